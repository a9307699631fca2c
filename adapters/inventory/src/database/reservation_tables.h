#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "database/backend.h"
#include "lockkeeper/inventory/reservation.h"

namespace lockkeeper::inventory {

/// One article of a reservation.
struct ReservedLine {
  std::string id{};
  std::int64_t line = 0;
  std::string sku{};
  std::int64_t wanted = 0;
  std::int64_t quantity = 0;
  std::optional<ReservationState> state = ReservationState::held;  ///< Empty: see `unknownState`.
  std::string unknownState{};        ///< What stands there, if this version of the library has no such state.
  std::chrono::milliseconds left{};  ///< Until it expires, by the database's clock; not more than 0: it has.
};

/// The statements on reservations, in one transaction. A line is written only by whoever has its article's
/// row; reads see what was committed when the transaction first asked, or had got that row. All throw what
/// the transaction throws.
class ReservationTables {
 public:
  ReservationTables(Transaction& transaction, Dialect dialect)
      : transaction_(transaction), dialect_(dialect) {}

  /// All lines of these reservations, of each ordered by sku.
  std::vector<ReservedLine> lines(std::span<const std::string> ids);
  /// Held lines of the article whose time is over, `most` at most.
  std::vector<ReservedLine> expiredOf(const std::string& sku, std::int64_t most);
  /// Articles of which something has expired, `most` at most.
  std::vector<std::string> skusOfExpired(std::int64_t most);
  /// When the next held line of the article expires; empty when none is held.
  std::optional<std::chrono::milliseconds> earliestExpiry(const std::string& sku);
  /// How many of the article were sold by the confirmed reservation.
  std::int64_t sold(const std::string& id, const std::string& sku);

  /// Inserts the lines, as held for the time that is left. Changes no row for a line of which the
  /// reservation's id is taken.
  mysql::SqlStatement insertion(std::span<const ReservedLine> lines) const;

  // Each changes one row.
  /// Changes no row when the line is not held.
  static mysql::SqlStatement ending(const ReservedLine& line, ReservationState state);
  /// Deletes the line. Changes no row when it is not held.
  static mysql::SqlStatement removal(const ReservedLine& line);
  /// Holds the line for the time that is left.
  mysql::SqlStatement extension(const ReservedLine& line) const;

 private:
  std::vector<ReservedLine> select(const std::string& condition, const mysql::SqlRow& values);

  Transaction& transaction_;
  const Dialect dialect_;
};

}  // namespace lockkeeper::inventory
