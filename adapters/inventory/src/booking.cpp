#include "booking.h"

#include "transaction.h"

namespace lockkeeper::inventory {

Deduction Booking::run() {
  Transaction transaction(pool_);
  StockTables tables(transaction.connection());
  // First of all, so that a second call with the same id waits here for the first one's end.
  if (!tables.insertOrder(order_)) return Deduction::duplicate;
  const Deduction result = takeStock(tables);
  if (result != Deduction::deducted) return result;
  try {
    transaction.commit();
  } catch (const Poco::Exception& exception) {
    return lookUp(exception);
  }
  return Deduction::deducted;
}

Deduction Booking::takeStock(StockTables& tables) {
  switch (way_) {
    case Way::lockOnly:
      return readAndWrite(tables);
    case Way::fencedRow:
      return claimAndTake(tables);
    case Way::conditionalUpdate:
      break;
  }
  return take(tables);
}

Deduction Booking::readAndWrite(StockTables& tables) {
  const auto row = tables.read(order_.sku);
  if (!row) return Deduction::unknownSku;
  if (row->level < order_.quantity) return Deduction::soldOut;
  const bool unchanged = tables.write(order_.sku, row->level - order_.quantity, row->version);
  return unchanged && lock_->valid() ? Deduction::deducted : Deduction::conflict;
}

/// Does not ask whether the lock is still valid: that is the point of the fence. Once the row is claimed, the
/// database keeps everybody else from it until the transaction ends.
Deduction Booking::claimAndTake(StockTables& tables) {
  if (!lock_->fence()) throw ConfigError("the lock store granted a lock without the fence that it promises");
  const auto fence = static_cast<std::int64_t>(*lock_->fence());
  if (!tables.claim(order_.sku, fence)) return unlessMissing(tables, Deduction::conflict);
  return take(tables);
}

Deduction Booking::take(StockTables& tables) {
  if (tables.take(order_.sku, order_.quantity)) return Deduction::deducted;
  return unlessMissing(tables, Deduction::soldOut);
}

Deduction Booking::unlessMissing(StockTables& tables, Deduction result) {
  return tables.read(order_.sku) ? result : Deduction::unknownSku;
}

/// COMMIT was sent and its answer was not seen: the order's row tells whether it was done.
Deduction Booking::lookUp(const Poco::Exception& commitFailure) {
  std::optional<std::int64_t> writtenBy;
  try {
    Transaction transaction(pool_);
    writtenBy = StockTables(transaction.connection()).attemptOf(order_.orderId);
  } catch (const std::exception&) {
    throw OutcomeUnknown(pool_.display() + ": the connection broke during COMMIT");
  }
  if (!writtenBy) commitFailure.rethrow();  // Not done, and never will be: as if it had not been sent.
  return *writtenBy == order_.attempt ? Deduction::deducted : Deduction::duplicate;
}

}  // namespace lockkeeper::inventory
