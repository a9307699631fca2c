#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "database/database.h"
#include "database/ledger_tables.h"
#include "database/reservation_tables.h"
#include "database/stock_tables.h"

namespace lockkeeper::inventory {

/// What the lines of a reservation are together. Throws ConfigError when a line has an unknown state.
ReservationState stateOf(std::span<const ReservedLine> lines);
/// What they hold, or held.
std::vector<CartLine> cartOf(std::span<const ReservedLine> lines);
/// Whether they were reserved for this cart, which is ordered by sku.
bool areOf(std::span<const ReservedLine> lines, std::span<const CartLine> cart);

/// A transaction on reservations, and all statements in it. It takes the rows of its articles first, in the
/// order of their skus, then those of reservations, then those of the ledger.
class ReservationWork {
 public:
  /// So many lines take some 10 ms, in which others wait for the row.
  static constexpr std::int64_t mostPutBack = 200;

  Transaction transaction;
  StockTables stock;
  ReservationTables reservations;
  LedgerTables ledger;

  /// `who` is for the ledger.
  ReservationWork(Database& database, const std::string& who, Instant latest = Instant::max());

  /// Holds these lines, each for the time that it says is left: takes them from stock, and inserts them and
  /// their rows of the ledger, in one round trip. Lines of several articles are of rows that it holds. False
  /// unless there was enough and no id was taken: then the transaction must not be committed. `firstEntry` is
  /// the number of the first line's row of the ledger.
  bool take(std::span<const ReservedLine> lines, const Source& source, std::int64_t firstEntry = 0);

  /// Ends those lines that are held, in one round trip. Unless they are sold, what they hold goes back.
  void end(std::span<const ReservedLine> lines, ReservationState state);

  /// Removes these lines of a reservation, all of which are held, so that others can take their places; what
  /// they hold goes back. In one round trip. `firstEntry` as for take().
  void remove(std::span<const ReservedLine> lines, std::int64_t firstEntry);

  /// What was put back.
  struct PutBack {
    std::size_t lines = 0;
    std::int64_t pieces = 0;
  };
  /// Puts back what has expired of the article, or mostPutBack lines of it. The transaction has the
  /// article's row.
  PutBack putBack(const std::string& sku);
  /// How much that was in this transaction.
  std::int64_t linesPutBack() const { return linesPutBack_; }

  /// Holds these lines for the time that each says is left.
  void extend(std::span<const ReservedLine> lines);

 private:
  /// A line that no longer holds anything, and its rows.
  struct Release {
    const ReservedLine& line;
    mysql::SqlStatement statement;  ///< Changes its row.
    std::int64_t entry;             ///< The number of its row of the ledger.
  };
  void release(std::span<const Release> releases, const std::string& reason, bool goesBack);
  void execute(std::span<const mysql::SqlStatement> statements, std::size_t rows);
  void insert(std::vector<mysql::SqlStatement>& statements, std::span<const Change> changes,
              const Source& source);
  std::size_t mostRows() const;

  Database& database_;
  const std::string& who_;
  std::int64_t linesPutBack_ = 0;
};

}  // namespace lockkeeper::inventory
