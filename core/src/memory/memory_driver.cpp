#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/base/loss_listeners.h"

#include <algorithm>
#include <list>
#include <vector>

#include "limit/memory_rates.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/process_mutex.h"
#include "lockkeeper/store_registry.h"
#include "memory/lock_table.h"
#include "memory/memory_records.h"

namespace lockkeeper {

struct MemoryDriver::State {
  explicit State(std::shared_ptr<Clock> c) : clock(std::move(c)), shared(clock), rates(clock) {}

  const std::shared_ptr<Clock> clock;
  detail::MemoryRecords shared;  // with a mutex of its own, as rates
  detail::MemoryRates rates;
  LossListeners lossListeners;
  detail::ProcessMutex mutex;
  detail::LockTable table;  // guarded by it

  Instant now() const noexcept { return clock->now(); }
};

MemoryDriver::MemoryDriver(std::shared_ptr<Clock> clock)
    : state_(std::make_unique<State>(std::move(clock))) {}

MemoryDriver::~MemoryDriver() {
  // Another thread of the parent may have been changing it: leaking it is right.
  if (state_->mutex.inherited()) static_cast<void>(state_.release());
}

AcquireResult MemoryDriver::acquire(const AcquireRequest& request) {
  const auto held = state_->mutex.lock();
  return state_->table.acquire(request, state_->now());
}

AcquireResult MemoryDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                           std::stop_token stop) {
  const Instant began = state_->now();
  const Instant waitUntil = saturatingAdd(began, waitFor);
  detail::KeyWaiter waiter{.request = request, .since = began};
  const std::stop_callback onStop(stop, [&] {
    if (state_->mutex.inherited()) return;  // the one who waits is in the parent
    const auto held = state_->mutex.lock();
    waiter.wakeUp.notify_one();
  });
  auto held = state_->mutex.lock();
  AcquireResult result = state_->table.acquire(request, state_->now());
  if (std::holds_alternative<Granted>(result)) return result;

  // A record with waiters stays where it is: references are safe, iterators would not be.
  detail::KeyRecord& record = state_->table.busy(request.claim.key);
  const auto place =
      record.waiters.insert(request.ahead ? record.waiters.begin() : record.waiters.end(), &waiter);
  while (!waiter.isServed() && !record.isRefused(request.claim) && !stop.stop_requested() &&
         state_->now() < waitUntil) {
    if (const Instant now = state_->now(); now >= record.nextEnd()) {
      state_->table.refresh(record, now);
    } else {
      const Instant until = std::min(waitUntil, record.nextEnd());
      record.latestWakeUp = std::max(record.latestWakeUp, until);
      state_->clock->wait(held, waiter.wakeUp, until);
    }
  }
  if (waiter.failure) std::rethrow_exception(waiter.failure);
  if (waiter.granted) return *waiter.granted;
  record.waiters.erase(place);
  // Those behind it may fit where it did not.
  if (record.shares) state_->table.handOver(record, state_->now());
  record.checkLimit(request.claim);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(record.nextEnd() - state_->now());
  return Busy{std::max(left, left.zero())};
}

std::vector<AcquireResult> MemoryDriver::acquireInOrder(std::span<const AcquireRequest> requests) {
  std::vector<AcquireResult> results;
  results.reserve(requests.size());
  const auto held = state_->mutex.lock();
  for (const AcquireRequest& request : requests) {
    results.push_back(state_->table.acquire(request, state_->now()));
    if (std::holds_alternative<Busy>(results.back())) break;
  }
  return results;
}

void MemoryDriver::renew(std::span<Renewal> renewals, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  for (Renewal& renewal : renewals) renewal.outcome = state_->table.renew(renewal, state_->now());
}

ReleaseOutcome MemoryDriver::release(const Claim& claim, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  return state_->table.free(claim, state_->now()) ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

std::optional<Holder> MemoryDriver::holder(std::string_view key, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  const Instant now = state_->now();
  const detail::KeyRecord* record = state_->table.find(key, now);
  if (record == nullptr) return std::nullopt;
  return record->holder(now);
}

Promises MemoryDriver::promises() const {
  return {FencePromise::whileStoreKeepsWrites, "locks live in this process and end with it"};
}

void MemoryDriver::list(std::string_view prefix,
                        const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                        Instant /*deadline*/) {
  std::list<std::pair<std::string, Holder>> found;
  {
    const auto held = state_->mutex.lock();
    const Instant now = state_->now();
    for (const auto& [key, record] : state_->table.records()) {
      if (key.starts_with(prefix) && !record.isOver(now)) found.emplace_back(key, record.holder(now));
    }
  }
  // Outside the mutex, so that the visitor may use the driver.
  for (const auto& [key, holder] : found) {
    if (!visit(key, holder)) return;
  }
}

std::vector<std::vector<Waiter>> MemoryDriver::waiters(std::span<const std::string> keys,
                                                       Instant /*deadline*/) {
  std::vector<std::vector<Waiter>> found(keys.size());
  const auto held = state_->mutex.lock();
  const Instant now = state_->now();
  for (std::size_t index = 0; index < keys.size(); ++index) {
    const detail::KeyRecord* record = state_->table.find(keys[index], now);
    if (record == nullptr) continue;
    for (const detail::KeyWaiter* each : record->waiters) {
      if (found[index].size() == mostListed) break;
      const Claim& claim = each->request.claim;
      found[index].push_back({std::string(claim.owner),
                              std::chrono::duration_cast<std::chrono::milliseconds>(now - each->since),
                              claim.share});
    }
  }
  return found;
}

bool MemoryDriver::breakLock(std::string_view key, Instant /*deadline*/, const Holder* shown) {
  const auto held = state_->mutex.lock();
  const Instant now = state_->now();
  const detail::KeyRecord* record = state_->table.find(key, now);
  if (record == nullptr) return false;
  const Holder holder = record->holder(now);
  std::vector<Token> lost;
  if (!record->shares) {
    if (shown == nullptr || shown->fence == holder.fence) lost.push_back(record->token);
  } else {
    for (const auto& [token, grant] : record->shares->grants()) {
      if (shown == nullptr || shown->grantId == std::to_string(grant.number)) lost.push_back(token);
    }
  }
  for (const Token& token : lost) state_->table.free({key, token, {}}, now);
  state_->lossListeners.claimsLost(lost);
  return !lost.empty();
}

std::vector<Holder> MemoryDriver::shareHolders(std::string_view key, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  const Instant now = state_->now();
  const detail::KeyRecord* record = state_->table.find(key, now);
  std::vector<Holder> holders;
  if (record == nullptr || !record->shares) return holders;
  for (const auto& [token, grant] : record->shares->grants()) {
    holders.push_back(grant.holder(now));
  }
  return holders;
}

bool MemoryDriver::resize(std::string_view key, std::uint32_t limit, Instant /*deadline*/) {
  checkShare({.weight = 1, .limit = limit});
  const auto held = state_->mutex.lock();
  const Instant now = state_->now();
  detail::KeyRecord* record = state_->table.find(key, now);
  if (record == nullptr || !record->shares) return false;
  record->shares->resize(limit);
  state_->table.handOver(*record, now);
  for (detail::KeyWaiter* waiter : record->waiters) waiter->wakeUp.notify_one();
  return true;
}

void MemoryDriver::addLossListener(std::weak_ptr<LossListener> listener) {
  state_->lossListeners.add(std::move(listener));
}

void* MemoryDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(SharedRecords)) return capabilityOf<SharedRecords>(state_->shared, type);
  return capabilityOf<Waitable, Batchable, Browsable, WaiterBrowsable, Breakable, LossReporting, Permits,
                      RateDriver>(*this, type);
}

void MemoryDriver::take(std::span<RateCharge> charges, Instant deadline) {
  state_->rates.take(charges, deadline);
}

void MemoryDriver::peek(std::span<RateCharge> charges, Instant deadline) {
  state_->rates.peek(charges, deadline);
}

bool MemoryDriver::refund(const RateRefund& refund, Instant deadline) {
  return state_->rates.refund(refund, deadline);
}

void MemoryDriver::reset(std::string_view key, RateKind kind, Instant deadline) {
  state_->rates.reset(key, kind, deadline);
}

void memory::use(StoreRegistry& registry) {
  const auto check = [](const StoreUri& uri) {
    uri.allowOnly({});
    if (!uri.endpoints().empty() || !uri.path().empty()) {
      throw ConfigError("the store 'memory:' takes no host and no path");
    }
  };
  registry.add("memory", [check](const StoreUri& uri, const Environment& environment) {
    check(uri);
    return std::make_shared<MemoryDriver>(environment.clock);
  });
  registry.addValues("memory", [check](const StoreUri& uri, const Environment& environment) {
    check(uri);
    return std::make_shared<MemoryValues>(environment.clock);
  });
}

// Here, so that the source of the registry does not include a driver.
StoreRegistry::StoreRegistry() { memory::use(*this); }

}  // namespace lockkeeper
