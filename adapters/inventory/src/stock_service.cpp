#include "lockkeeper/inventory/stock_service.h"

#include <limits>
#include <utility>

#include "booking.h"
#include "database.h"
#include "options.h"

namespace lockkeeper::inventory {
namespace {

/// Commits what does no harm when it is done twice.
void commitAgain(Transaction& transaction) {
  try {
    transaction.commit();
  } catch (const OutcomeUnknown& doubt) {
    throw Database::Undone(doubt.what());
  }
}

}  // namespace

class StockService::State {
 public:
  State(std::string_view uri, LockManager& locks, Way way, StockOptions options)
      : locks_(locks),
        way_(way),
        options_(std::move(options)),
        database_(uri, options_),
        stock_(stockRow(options_.environment)) {}

  Database& database() { return database_; }
  Deduction deduct(const Order& order);
  std::int64_t newAttempt();

 private:
  std::optional<Lock> takeLock(const std::string& key);

  LockManager& locks_;
  const Way way_;
  const StockOptions options_;
  Database database_;
  const mysql::VersionedRow stock_;
};

Deduction StockService::State::deduct(const Order& order) {
  std::optional<Lock> lock;
  if (way_ != Way::conditionalUpdate && way_ != Way::optimistic) {
    lock = takeLock(lockKey(order.sku));
    if (!lock) return Deduction::busy;
  }
  Booking booking(database_, stock_, way_, order, lock ? &*lock : nullptr);
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
    Transaction transaction = database.begin();
    StockTables(transaction, database.dialect()).createAll();
    commitAgain(transaction);
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
    Transaction transaction = database.begin();
    StockTables(transaction, database.dialect()).add(std::string(sku), quantity);
    transaction.commit();
  });
}

std::optional<std::int64_t> StockService::level(std::string_view sku) {
  checkSku(sku);
  Database& database = state_->database();
  std::optional<std::int64_t> level;
  database.run([&] {
    Transaction transaction = database.begin(Access::read);
    level = StockTables(transaction, database.dialect()).level(std::string(sku));
  });
  return level;
}

void StockService::resetFences() {
  Database& database = state_->database();
  database.run([&] {
    Transaction transaction = database.begin();
    StockTables(transaction, database.dialect()).resetFences();
    commitAgain(transaction);
  });
}

}  // namespace lockkeeper::inventory
