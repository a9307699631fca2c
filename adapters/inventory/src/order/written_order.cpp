#include "order/written_order.h"

#include "database/stock_tables.h"

namespace lockkeeper::inventory {

std::optional<std::int64_t> writtenBy(Database& database, const std::string& orderId, Instant latest) {
  Transaction transaction = database.begin(Access::write, latest);
  StockTables tables(transaction, database.dialect());
  const auto attempt = tables.attemptOf(orderId);
  if (!attempt) return attempt;
  tables.rewriteOrder(orderId);
  commitAgain(transaction);
  return attempt;
}

std::optional<std::int64_t> writtenDespite(const OutcomeUnknown& doubt, Database& database,
                                           const std::string& orderId, Instant latest) {
  std::optional<std::int64_t> attempt;
  bool known = false;
  try {
    known = database.attempt([&] { attempt = writtenBy(database, orderId, latest); }, latest);
  } catch (const Error&) {
  }
  if (!known) throw OutcomeUnknown(doubt.what());
  return attempt;
}

}  // namespace lockkeeper::inventory
