#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "database/backend.h"
#include "database/stock_tables.h"
#include "lockkeeper/inventory/ledger.h"

namespace lockkeeper::inventory {

/// A change of stock that is no order.
struct Change {
  std::string reason{};
  std::string id{};  ///< Together with the reason and the line, the row's key.
  std::int64_t line = 0;
  std::string sku{};
  std::int64_t amount = 0;
  std::string orderId{};     ///< Empty: of no order.
  std::int64_t attempt = 0;  ///< Random: tells the row that this call wrote from another call's.
  std::string who{};
  std::int64_t later = 0;  ///< What changes that are written with it, and count as later ones, take together.
};

/// A change that is in the ledger.
struct WrittenChange {
  std::string sku;
  std::int64_t attempt;
};

/// The statements on the ledger, in one transaction. All throw what that throws.
class LedgerTables {
 public:
  LedgerTables(Transaction& transaction, Dialect dialect) : transaction_(transaction), dialect_(dialect) {}

  /// Sees what was committed when the transaction first asked, or had got the article's row.
  std::optional<WrittenChange> find(const std::string& reason, const std::string& id);
  /// Inserts the changes once the articles' rows are as the last of them leaves them. `source` is the row
  /// that the transaction has; of an article that is split, nobody knows what is in stock then. Changes no
  /// row for one of which the key is taken.
  mysql::SqlStatement insertion(std::span<const Change> changes, const Source& source) const;
  /// False when the key is taken.
  bool insert(const Change& change);
  /// The number after those of all rows about lines that the reservation was given, or that were replaced.
  std::int64_t nextLine(const std::string& reservationId);
  /// Those of the ids under which the ledger has a reservation.
  std::set<std::string> reservedAmong(std::span<const std::string> ids);
  /// How many of the article came back from the order.
  std::int64_t returned(const std::string& orderId, const std::string& sku);

  /// Writes what was there before the ledger, and before `added` was added, where that is not written yet.
  /// The transaction has the article's row.
  void open(const std::string& sku, std::int64_t added, const std::string& who);
  /// The next articles after `after`, in their order, that may have to be opened; `most` at most.
  std::vector<std::string> unopened(const std::string& after, std::int64_t most);

  /// The article's last entries, the newest first.
  std::vector<LedgerEntry> entries(const std::string& sku, std::int64_t most);

 private:
  Transaction& transaction_;
  const Dialect dialect_;
};

}  // namespace lockkeeper::inventory
