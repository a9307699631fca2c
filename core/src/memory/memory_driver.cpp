#include "lockkeeper/memory/memory_driver.h"

#include <algorithm>
#include <list>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/string_map.h"
#include "lockkeeper/store_registry.h"
#include "memory/memory_rates.h"
#include "memory/memory_records.h"
#include "memory/process_mutex.h"

namespace lockkeeper {

namespace {

struct Waiter {
  const AcquireRequest& request;
  std::condition_variable wakeUp;
  std::optional<Granted> granted;
};

struct Record {
  Token token;
  std::string owner;
  Fence fence = 0;
  Instant end{};
  std::list<Waiter*> waiters;
};

}  // namespace

struct MemoryDriver::State {
  explicit State(std::shared_ptr<Clock> c) : clock(std::move(c)), shared(clock), rates(clock) {}

  const std::shared_ptr<Clock> clock;
  detail::MemoryRecords shared;  // with a mutex of its own, as rates
  detail::MemoryRates rates;
  LossListeners lossListeners;
  detail::ProcessMutex mutex;
  using Records = StringMap<Record>;
  Records records;
  Records::node_type spare;  // of the last key that became free: its memory is used again
  Fence lastFence = 0;       // one counter for all keys: it increases for each of them
  std::size_t sweepAt = 1024;

  Granted grant(Record& record, const AcquireRequest& request) {
    const Instant now = clock->now();
    record.owner = request.claim.owner;  // first: it may fail
    record.token = request.claim.token;
    record.fence = ++lastFence;
    record.end = now + request.ttl;
    return {now, request.ttl, record.fence};
  }

  // A free or expired key goes to the one who has waited longest; false when nobody waits.
  bool handOver(Record& record) {
    if (record.waiters.empty()) return false;
    Waiter* next = record.waiters.front();
    record.waiters.pop_front();
    next->granted = grant(record, next->request);
    next->wakeUp.notify_one();
    // Those behind wait for the end of the lease before theirs: it has a new one now.
    for (Waiter* waiter : record.waiters) waiter->wakeUp.notify_one();
    return true;
  }

  // Ends an expired lease first, so that callers see the truth. Null when the key is free.
  Record* current(std::string_view key) {
    const auto found = find(key);
    return found == records.end() ? nullptr : &found->second;
  }
  // Likewise; records.end() when the key is free.
  Records::iterator find(std::string_view key) {
    const auto found = records.find(key);
    if (found == records.end() || clock->now() < found->second.end || handOver(found->second)) return found;
    spare = records.extract(found);
    return records.end();
  }

  // Frees the key: for the next waiter, or altogether.
  void free(Records::iterator found) {
    if (!handOver(found->second)) spare = records.extract(found);
  }

  Record& add(std::string_view key) {
    if (!spare) return records.try_emplace(std::string(key)).first->second;
    spare.key() = key;
    spare.mapped().end = {};
    return records.insert(std::move(spare)).position->second;
  }

  // Leases that ended unseen take memory until somebody asks for their key: clear them away now and then.
  void sweep() {
    if (records.size() < sweepAt) return;
    const Instant now = clock->now();
    std::erase_if(records,
                  [&](const auto& entry) { return entry.second.end <= now && entry.second.waiters.empty(); });
    sweepAt = std::max<std::size_t>(1024, 2 * records.size());
  }

  // What one attempt comes to.
  AcquireResult acquire(const AcquireRequest& request) {
    Record* record = current(request.claim.key);
    if (record == nullptr) {
      sweep();
      record = &add(request.claim.key);
      return grant(*record, request);
    }
    const Instant now = clock->now();
    if (record->token == request.claim.token) {
      record->end = now + request.ttl;
      return Granted{now, request.ttl, record->fence};
    }
    return Busy{std::chrono::ceil<std::chrono::milliseconds>(record->end - now)};
  }
};

MemoryDriver::MemoryDriver(std::shared_ptr<Clock> clock)
    : state_(std::make_unique<State>(std::move(clock))) {}

MemoryDriver::~MemoryDriver() {
  // Another thread of the parent may have been changing it: leaking it is right.
  if (state_->mutex.inherited()) static_cast<void>(state_.release());
}

AcquireResult MemoryDriver::acquire(const AcquireRequest& request) {
  const auto held = state_->mutex.lock();
  return state_->acquire(request);
}

AcquireResult MemoryDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                           std::stop_token stop) {
  const Instant waitUntil = saturatingAdd(state_->clock->now(), waitFor);
  Waiter waiter{request, {}, {}};
  const std::stop_callback onStop(stop, [&] {
    if (state_->mutex.inherited()) return;  // the one who waits is in the parent
    const auto held = state_->mutex.lock();
    waiter.wakeUp.notify_one();
  });
  auto held = state_->mutex.lock();
  AcquireResult result = state_->acquire(request);
  if (std::holds_alternative<Granted>(result)) return result;

  // A record with waiters stays where it is: references are safe, iterators would not be.
  Record& record = state_->records.find(request.claim.key)->second;
  const auto place = record.waiters.insert(record.waiters.end(), &waiter);
  while (!waiter.granted && !stop.stop_requested() && state_->clock->now() < waitUntil) {
    if (state_->clock->now() >= record.end) {
      state_->handOver(record);
    } else {
      state_->clock->wait(held, waiter.wakeUp, std::min(waitUntil, record.end));
    }
  }
  if (waiter.granted) return *waiter.granted;
  record.waiters.erase(place);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(record.end - state_->clock->now());
  return Busy{std::max(left, left.zero())};
}

std::vector<AcquireResult> MemoryDriver::acquireInOrder(std::span<const AcquireRequest> requests) {
  std::vector<AcquireResult> results;
  results.reserve(requests.size());
  const auto held = state_->mutex.lock();
  for (const AcquireRequest& request : requests) {
    results.push_back(state_->acquire(request));
    if (std::holds_alternative<Busy>(results.back())) break;
  }
  return results;
}

void MemoryDriver::renew(std::span<Renewal> renewals, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  for (Renewal& renewal : renewals) {
    Record* record = state_->current(renewal.claim.key);
    const bool owner = record != nullptr && record->token == renewal.claim.token;
    renewal.outcome = owner ? RenewOutcome::renewed : RenewOutcome::notOwner;
    if (!owner) continue;
    renewal.leasedFrom = state_->clock->now();
    renewal.leasedFor = renewal.ttl;
    record->end = renewal.leasedFrom + renewal.ttl;
  }
}

ReleaseOutcome MemoryDriver::release(const Claim& claim, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  const auto found = state_->find(claim.key);
  if (found == state_->records.end() || found->second.token != claim.token) return ReleaseOutcome::notOwner;
  state_->free(found);
  return ReleaseOutcome::released;
}

std::optional<Holder> MemoryDriver::holder(std::string_view key, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  const Record* record = state_->current(key);
  if (record == nullptr) return std::nullopt;
  const auto remaining = std::chrono::ceil<std::chrono::milliseconds>(record->end - state_->clock->now());
  return Holder{record->owner, remaining, record->fence};
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
    const Instant now = state_->clock->now();
    for (const auto& [key, record] : state_->records) {
      if (!key.starts_with(prefix) || record.end <= now) continue;
      found.push_back(
          {key,
           {record.owner, std::chrono::ceil<std::chrono::milliseconds>(record.end - now), record.fence}});
    }
  }
  // Outside the mutex, so that the visitor may use the driver.
  for (const auto& [key, holder] : found) {
    if (!visit(key, holder)) return;
  }
}

bool MemoryDriver::breakLock(std::string_view key, Instant /*deadline*/, const Holder* shown) {
  const auto held = state_->mutex.lock();
  const auto found = state_->find(key);
  if (found == state_->records.end()) return false;
  if (shown != nullptr && found->second.fence != shown->fence) return false;
  const Token lost = found->second.token;
  state_->free(found);
  state_->lossListeners.tell({&lost, 1});
  return true;
}

void MemoryDriver::addLossListener(std::weak_ptr<LossListener> listener) {
  state_->lossListeners.add(std::move(listener));
}

void* MemoryDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(SharedRecords)) return capabilityOf<SharedRecords>(state_->shared, type);
  return capabilityOf<Waitable, Batchable, Browsable, Breakable, LossReporting, RateDriver>(*this, type);
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

}  // namespace lockkeeper
