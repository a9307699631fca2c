#include "lockkeeper/inventory/stock_service.h"

#include <limits>
#include <utility>

#include "booking.h"
#include "database.h"
#include "options.h"
#include "transaction.h"

namespace lockkeeper::inventory {

class StockService::State {
 public:
  State(std::string_view uri, LockManager& locks, Way way, StockOptions options)
      : locks_(locks),
        way_(way),
        options_(std::move(options)),
        database_(DatabaseUri::parse(uri), options_.sessions, options_.operationTimeout,
                  options_.environment) {}

  Database& database() { return database_; }
  Deduction deduct(const Order& order);
  std::int64_t newAttempt();

 private:
  std::optional<Lock> takeLock(const std::string& key);

  LockManager& locks_;
  const Way way_;
  const StockOptions options_;
  Database database_;
};

Deduction StockService::State::deduct(const Order& order) {
  std::optional<Lock> lock;
  if (way_ != Way::conditionalUpdate) {
    lock = takeLock(lockKey(order.sku));
    if (!lock) return Deduction::busy;
  }
  Booking booking(database_.pool(), way_, order, lock ? &*lock : nullptr);
  Deduction result = Deduction::conflict;
  return database_.attempt([&] { result = booking.run(); }) ? result : Deduction::conflict;
}

std::optional<Lock> StockService::State::takeLock(const std::string& key) {
  try {
    return locks_.tryLock(key, {.ttl = options_.lockTtl, .waitFor = options_.lockWait});
  } catch (const OutcomeUnknown& error) {
    // Unknown is the lock's fate only: the order has certainly not been booked.
    throw StoreUnavailable(error.what());
  }
}

std::int64_t StockService::State::newAttempt() {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(options_.environment.random->upTo(most));
}

StockService::StockService(std::string_view database, LockManager& locks, Way way, StockOptions options) {
  checkOptions(options);
  if (way == Way::fencedRow && locks.promises().fence == FencePromise::none) {
    throw ConfigError("fenced row needs a lock store that promises fences, and this one promises none");
  }
  state_ = std::make_unique<State>(database, locks, way, std::move(options));
}

StockService::StockService(StockService&&) noexcept = default;
StockService& StockService::operator=(StockService&&) noexcept = default;
StockService::~StockService() = default;

void StockService::createSchema() {
  Database& database = state_->database();
  database.run([&] {
    ConnectionPool::Lease lease(database.pool());
    StockTables(lease.connection()).createAll();
    lease.keep();
  });
}

Deduction StockService::deduct(std::string_view sku, std::int64_t quantity, std::string_view orderId) {
  checkSku(sku);
  checkOrderId(orderId);
  checkQuantity(quantity, 1);
  return state_->deduct({std::string(sku), quantity, std::string(orderId), state_->newAttempt()});
}

void StockService::restock(std::string_view sku, std::int64_t quantity) {
  checkSku(sku);
  checkQuantity(quantity, 0);
  Database& database = state_->database();
  database.run([&] {
    Transaction transaction(database.pool());
    StockTables(transaction.connection()).add(std::string(sku), quantity);
    try {
      transaction.commit();
    } catch (const Poco::Exception&) {
      throw OutcomeUnknown(database.pool().display() + ": the connection broke during COMMIT");
    }
  });
}

std::optional<std::int64_t> StockService::level(std::string_view sku) {
  checkSku(sku);
  Database& database = state_->database();
  std::optional<StockRow> row;
  database.run([&] {
    ConnectionPool::Lease lease(database.pool());
    row = StockTables(lease.connection()).read(std::string(sku));
    lease.keep();
  });
  return row ? std::optional(row->level) : std::nullopt;
}

void StockService::resetFences() {
  Database& database = state_->database();
  database.run([&] {
    Transaction transaction(database.pool());
    StockTables(transaction.connection()).resetFences();
    transaction.commit();  // Does no harm when it is done twice.
  });
}

}  // namespace lockkeeper::inventory
