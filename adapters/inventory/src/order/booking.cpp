#include "order/booking.h"

#include "order/written_order.h"

namespace lockkeeper::inventory {

using mysql::RowOutcome;
using mysql::SqlRow;

namespace {

/// VersionedRow's database.
struct UntilLatest {
  Database& database;
  Instant latest;

  Transaction begin() const { return database.begin(Access::write, latest); }
  bool isContention(const std::exception& failure) const { return database.isContention(failure); }
};

}  // namespace

mysql::VersionedRow stockRow(const Environment& environment) {
  // As many attempts as it takes where many sell the same article.
  return mysql::VersionedRow({.name = "lockkeeper_stock", .key = "sku", .columns = {"level", "buckets"}},
                             {.attempts = 20, .environment = environment});
}

Deduction Booking::run() {
  try {
    const bool optimistic = way_ == Way::optimistic || way_ == Way::lockedOptimistic;
    const Deduction result = optimistic ? runOptimistically() : runOnce();
    if (result != Deduction::duplicate) return result;
  } catch (const OutcomeUnknown& doubt) {
    return lookUp(doubt);
  }
  return writtenBy(database_, order_.orderId, latest_) ? Deduction::duplicate : Deduction::conflict;
}

Deduction Booking::runOnce() {
  Transaction transaction = database_.begin(Access::write, latest_);
  StockTables tables(transaction, database_.dialect());
  // First of all, so that a second call with the same id waits here for the first one's end.
  if (!tables.insertOrder(order_)) return Deduction::duplicate;
  const Deduction result = claimAndTake(tables);
  if (result == Deduction::deducted) transaction.commit();
  return result;
}

Deduction Booking::runOptimistically() {
  Deduction declined = Deduction::soldOut;
  const auto compute = [&](const SqlRow& row, Transaction& transaction) -> std::optional<SqlRow> {
    StockTables tables(transaction, database_.dialect());
    if (tables.insertOrder(order_, std::get<std::int64_t>(row[0]))) return lowered(row);
    declined = Deduction::duplicate;
    return std::nullopt;
  };
  UntilLatest database{database_, latest_};
  switch (stock_.update(database, order_.sku, compute)) {
    case RowOutcome::committed:
      return Deduction::deducted;
    case RowOutcome::declined:
      return declined;
    case RowOutcome::notFound:
      return writtenBy(database_, order_.orderId, latest_) ? Deduction::duplicate : Deduction::unknownSku;
    case RowOutcome::conflict:
      break;
  }
  return Deduction::conflict;
}

/// Empty when there is less in stock than ordered.
std::optional<SqlRow> Booking::lowered(const SqlRow& row) const {
  const auto level = std::get<std::int64_t>(row[0]);
  refuseIfSplit(std::get<std::int64_t>(row[1]));
  if (level < order_.quantity) return std::nullopt;
  return SqlRow{level - order_.quantity, row[1]};
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
  if (tables.take(order_)) return Deduction::deducted;
  return unlessMissing(tables, Deduction::soldOut);
}

Deduction Booking::unlessMissing(StockTables& tables, Deduction result) {
  const auto articles = tables.articles({order_.sku});
  if (articles.empty()) return Deduction::unknownSku;
  refuseIfSplit(articles.begin()->second.buckets);
  return result;
}

void Booking::refuseIfSplit(std::int64_t buckets) const {
  if (buckets == 1) return;
  throw ConfigError("the article " + quoted(order_.sku) + " is split into " + std::to_string(buckets) +
                    " buckets, from which only Way::conditionalUpdate sells; split(sku, 1) joins them");
}

/// COMMIT was sent and its answer was not seen: the order's row tells whether it was done.
Deduction Booking::lookUp(const OutcomeUnknown& doubt) {
  const auto attempt = writtenDespite(doubt, database_, order_.orderId, latest_);
  if (!attempt) throw Database::Undone(doubt.what());  // As if it had not been sent.
  return *attempt == order_.attempt ? Deduction::deducted : Deduction::duplicate;
}

}  // namespace lockkeeper::inventory
