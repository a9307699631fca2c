#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "database/database.h"
#include "database/ledger_tables.h"
#include "lockkeeper/inventory/stock_service.h"

namespace lockkeeper::inventory {

/// Restocks, returns and splits: each is one transaction. Thread-safe. Throws what the
/// database throws; OutcomeUnknown only when it could not be asked what has become of a COMMIT.
class StockChanges {
 public:
  /// `who` is for the ledger.
  StockChanges(Database& database, std::string who) : database_(database), who_(std::move(who)) {}

  /// `attempt` is random: whoever asks again after a doubt knows his own row by it.
  Restock restock(const std::string& sku, std::int64_t quantity, const std::string& id, std::int64_t attempt);
  Return takeBack(const std::string& orderId, const std::string& sku, std::int64_t quantity,
                  const std::string& id, std::int64_t attempt);
  /// False when there is no such article.
  bool split(const std::string& sku, std::int64_t buckets);

 private:
  std::int64_t sold(Transaction& transaction, const std::string& orderId, const std::string& sku);
  void write(LedgerTables& ledger, const Change& change);
  void keep(const WrittenChange& known);

  Database& database_;
  const std::string who_;
};

}  // namespace lockkeeper::inventory
