#include "lockkeeper/inventory/stock_service.h"

#include <exception>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "database/database.h"
#include "database/ledger_tables.h"
#include "database/schema_setup.h"
#include "database/stock_tables.h"
#include "ledger/ledger_check.h"
#include "ledger/reservations.h"
#include "ledger/stock_changes.h"
#include "lockkeeper/base/fork_guard.h"
#include "options.h"
#include "order/booking.h"
#include "order/combined_orders.h"

namespace lockkeeper::inventory {
namespace {

// A call ends after so many operationTimeouts: as long as four transactions take at most.
constexpr int longestCall = 8;

}  // namespace

class StockService::State {
 public:
  State(std::string_view uri, LockManager& locks, Way way, StockOptions options)
      : locks_(locks.share()),
        way_(way),
        options_(std::move(options)),
        database_(uri, options_),
        stock_(stockRow(options_.environment)),
        changes_(database_, options_.who),
        splits_(options_.environment.random),
        reservations_(database_, splits_, options_.who, options_.environment.clock),
        combined_(database_, splits_, reservations_, options_) {}

  Database& database() { return database_; }
  Deduction deduct(Order order);
  Restock restock(const std::string& sku, std::int64_t quantity, const std::string& id);
  Return takeBack(const std::string& orderId, const std::string& sku, std::int64_t quantity,
                  const std::string& id);
  Reservation reserve(PlacedReservation cart);
  Reservation replace(PlacedReservation cart);
  ReservationState settle(PlacedSettlement call);
  std::size_t sweepExpired();
  bool split(const std::string& sku, std::int64_t buckets);
  void createSchema() { setUpSchema(database_, options_.who); }
  /// Nobody has used it before.
  std::string newId() { return std::to_string(newAttempt()) + "-" + std::to_string(newAttempt()); }

 private:
  Instant deadline() const {
    return saturatingAdd(options_.environment.clock->now(), longestCall * options_.operationTimeout);
  }
  template <class Add>
  auto adding(const std::vector<std::string>& skus, Add&& add);
  std::int64_t newAttempt();
  std::optional<Lock> takeLock(const std::string& key);

  LockManager locks_;
  const Way way_;
  const StockOptions options_;
  Database database_;
  const mysql::VersionedRow stock_;
  StockChanges changes_;
  KnownSplits splits_;
  Reservations reservations_;
  const ForkGuard forkGuard_{};  // A child would wait for its parent's transactions.
  CombinedOrders combined_;
};

Deduction StockService::State::deduct(Order order) {
  forkGuard_.check();
  const bool combines = way_ == Way::conditionalUpdate;
  if (combines && combined_.refuses(order)) return Deduction::soldOut;
  order.attempt = newAttempt();
  order.who = options_.who;
  if (combines) return combined_.deduct(std::move(order), deadline());
  std::optional<Lock> lock;
  if (way_ != Way::optimistic) {
    lock = takeLock(lockKey(order.sku));
    if (!lock) return Deduction::busy;
  }
  const Instant latest = deadline();
  const std::string_view id = order.orderId;
  Booking booking(database_, stock_, way_, order, lock ? &*lock : nullptr, latest);
  Deduction result = Deduction::conflict;
  do {
    if (!database_.attempt([&] { result = booking.run(); }, latest)) return Deduction::conflict;
  } while (result == Deduction::soldOut &&
           reservations_.mayBeBooked(order.sku, order.quantity, {&id, 1}, latest));
  return result;
}

/// Others may buy what `add` has put into stock at once, also when it fails: it may be there all the same.
/// `add` may write to `skus`.
template <class Add>
auto StockService::State::adding(const std::vector<std::string>& skus, Add&& add) {
  const auto end = [&] {
    for (const std::string& each : skus) combined_.mayHaveMore(each);
  };
  try {
    auto result = add();
    end();
    return result;
  } catch (...) {
    end();
    throw;
  }
}

Restock StockService::State::restock(const std::string& sku, std::int64_t quantity, const std::string& id) {
  return adding({sku}, [&] { return changes_.restock(sku, quantity, id, newAttempt()); });
}

Return StockService::State::takeBack(const std::string& orderId, const std::string& sku,
                                     std::int64_t quantity, const std::string& id) {
  return adding({sku}, [&] { return changes_.takeBack(orderId, sku, quantity, id, newAttempt()); });
}

Reservation StockService::State::reserve(PlacedReservation cart) {
  forkGuard_.check();
  return reservations_.reserve(std::move(cart), deadline());
}

Reservation StockService::State::replace(PlacedReservation cart) {
  forkGuard_.check();
  std::vector<std::string> formerSkus;
  cart.formerSkus = &formerSkus;
  return adding(formerSkus, [&] { return reservations_.reserve(std::move(cart), deadline()); });
}

ReservationState StockService::State::settle(PlacedSettlement call) {
  forkGuard_.check();
  std::vector<std::string> skus;
  return adding(skus, [&] {
    const ReservationState state = reservations_.settle(std::move(call), deadline(), &skus).state;
    if (state != ReservationState::cancelled && state != ReservationState::expired) skus.clear();
    return state;
  });
}

/// An article whose row stays locked fails the call, but keeps no other one from being swept.
std::size_t StockService::State::sweepExpired() {
  std::size_t lines = 0;
  std::set<std::string> locked;
  std::exception_ptr failure;
  for (std::size_t before = 0;; before = lines) {
    for (const std::string& sku : reservations_.skusOfExpired()) {
      if (locked.contains(sku)) continue;
      try {
        lines += reservations_.putBackExpired(sku);
      } catch (const Database::StaysLocked&) {
        failure = std::current_exception();
        locked.insert(sku);
      }
      combined_.mayHaveMore(sku);
    }
    if (lines == before) break;
  }
  if (failure) std::rethrow_exception(failure);
  return lines;
}

bool StockService::State::split(const std::string& sku, std::int64_t buckets) {
  const bool exists = changes_.split(sku, buckets);
  if (exists) splits_.note(sku, buckets);
  return exists;
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

void StockService::createSchema() { state_->createSchema(); }

Deduction StockService::deduct(std::string_view sku, std::int64_t quantity, std::string_view orderId) {
  checkSku(sku);
  checkId("orderId", orderId);
  checkQuantity(quantity, 1);
  return state_->deduct({.sku = std::string(sku), .quantity = quantity, .orderId = std::string(orderId)});
}

void StockService::restock(std::string_view sku, std::int64_t quantity) {
  checkSku(sku);
  checkQuantity(quantity, 0);
  (void)state_->restock(std::string(sku), quantity, state_->newId());
}

Restock StockService::restock(std::string_view sku, std::int64_t quantity, std::string_view restockId) {
  checkSku(sku);
  checkQuantity(quantity, 0);
  checkId("restockId", restockId);
  return state_->restock(std::string(sku), quantity, std::string(restockId));
}

Return StockService::takeBack(std::string_view orderId, std::string_view sku, std::int64_t quantity,
                              std::string_view returnId) {
  checkId("orderId", orderId);
  checkSku(sku);
  checkQuantity(quantity, 1);
  checkId("returnId", returnId);
  return state_->takeBack(std::string(orderId), std::string(sku), quantity, std::string(returnId));
}

std::optional<std::int64_t> StockService::level(std::string_view sku) {
  checkSku(sku);
  Database& database = state_->database();
  std::optional<std::int64_t> level;
  database.run([&] {
    Transaction transaction = database.begin(Access::read);
    const auto stock = StockTables(transaction, database.dialect()).stock(std::string(sku));
    level = stock ? std::optional(stock->level) : std::nullopt;
  });
  return level;
}

Reservation StockService::reserve(const std::vector<CartLine>& cart, std::chrono::milliseconds ttl,
                                  std::string_view reservationId, CartRule rule) {
  std::vector<CartLine> ordered = checkedCart(cart);
  checkTtl(ttl);
  checkId("reservationId", reservationId);
  return state_->reserve(
      {.cart = std::move(ordered), .ttl = ttl, .id = std::string(reservationId), .rule = rule});
}

Reservation StockService::replace(const std::vector<CartLine>& cart, std::chrono::milliseconds ttl,
                                  std::string_view reservationId, CartRule rule) {
  std::vector<CartLine> ordered = checkedCart(cart);
  checkTtl(ttl);
  checkId("reservationId", reservationId);
  return state_->replace(
      {.cart = std::move(ordered), .ttl = ttl, .id = std::string(reservationId), .rule = rule});
}

ReservationState StockService::confirm(std::string_view reservationId) {
  checkId("reservationId", reservationId);
  return state_->settle({.id = std::string(reservationId), .target = ReservationState::confirmed});
}

ReservationState StockService::extend(std::string_view reservationId, std::chrono::milliseconds ttl) {
  checkId("reservationId", reservationId);
  checkTtl(ttl);
  return state_->settle({.id = std::string(reservationId), .ttl = ttl});
}

ReservationState StockService::cancel(std::string_view reservationId) {
  checkId("reservationId", reservationId);
  return state_->settle({.id = std::string(reservationId), .target = ReservationState::cancelled});
}

bool StockService::split(std::string_view sku, std::size_t buckets) {
  checkSku(sku);
  checkBuckets(buckets);
  return state_->split(std::string(sku), static_cast<std::int64_t>(buckets));
}

std::size_t StockService::sweepExpired() { return state_->sweepExpired(); }

std::vector<LedgerEntry> StockService::ledger(std::string_view sku, std::size_t most) {
  checkSku(sku);
  checkLedgerLength(most);
  Database& database = state_->database();
  std::vector<LedgerEntry> entries;
  database.run([&] {
    Transaction transaction = database.begin(Access::snapshot);
    entries = LedgerTables(transaction, database.dialect())
                  .entries(std::string(sku), static_cast<std::int64_t>(most));
  });
  return entries;
}

std::vector<Discrepancy> StockService::checkLedger(const std::stop_token& stop) {
  Database& database = state_->database();
  Transaction transaction = database.begin(Access::snapshot);
  return LedgerCheck(transaction, database.dialect(), stop).run();
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
