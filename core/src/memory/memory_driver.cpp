#include "lockkeeper/memory/memory_driver.h"

#include <algorithm>
#include <list>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/string_map.h"
#include "lockkeeper/store_registry.h"
#include "memory/key_shares.h"
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

/// A key that one claim has, or several share.
struct Record {
  Token token;
  std::string owner;
  Fence fence = 0;
  Instant end = Instant::min();
  std::optional<detail::KeyShares> shares{};
  std::list<Waiter*> waiters;

  /// Nobody has it `now`, when shares that have ended are removed.
  bool isFree(Instant now) const { return !shares && end <= now; }
  /// When it may have more room.
  Instant nextEnd() const { return shares ? shares->firstEnd() : end; }

  /// Whether a claim of this share can have it `now`, as far as those who hold it go.
  bool fits(const std::optional<Share>& share, Instant now) const {
    return isFree(now) || (shares && share && shares->fits(*share));
  }

  Holder holder(Instant now) const {
    const auto rest = [&](Instant until) {
      return std::chrono::ceil<std::chrono::milliseconds>(until - now);
    };
    if (!shares) return {.owner = owner, .remaining = rest(end), .fence = fence};
    const auto& last = shares->last();
    return {last.owner, rest(last.end), last.fence, std::to_string(last.number)};
  }
};

/// Throws when those who share the key and this claim name different limits.
void checkLimit(const Record& record, const Claim& claim) {
  if (record.shares && claim.share && claim.share->limit != record.shares->limit())
    throwLimitsDisagree(claim.key, *claim.share, record.shares->limit());
}

}  // namespace

struct MemoryDriver::State {
  explicit State(std::shared_ptr<Clock> c) : clock(std::move(c)), shared(clock), rates(clock) {}

  const std::shared_ptr<Clock> clock;
  detail::MemoryRecords shared;  // with a mutex of its own, as rates
  detail::MemoryRates rates;
  LossListeners lossListeners;
  detail::ProcessMutex mutex;
  StringMap<Record> records;
  std::uint64_t grants = 0;  // of shares
  Fence lastFence = 0;       // one counter for all keys: it increases for each of them
  std::size_t sweepAt = 1024;

  Granted grant(Record& record, const AcquireRequest& request) {
    const Instant now = clock->now();
    const Instant end = now + request.ttl;
    if (request.claim.share) return grantShare(record, request, now);
    record.token = request.claim.token;
    record.owner = request.claim.owner;
    record.fence = ++lastFence;
    record.end = end;
    return {now, request.ttl, record.fence};
  }

  Granted grantShare(Record& record, const AcquireRequest& request, Instant now) {
    const Share share = *request.claim.share;
    if (share.isWhole() || lastFence == 0) ++lastFence;
    if (!record.shares) record.shares.emplace(share.limit);
    record.shares->add(request.claim.token, {.owner = std::string(request.claim.owner),
                                             .share = share,
                                             .fence = lastFence,
                                             .number = ++grants,
                                             .end = now + request.ttl});
    return {now, request.ttl, lastFence};
  }

  // A key goes to those who have waited longest, as far as it has room. False when it is free then.
  bool handOver(Record& record) {
    const Instant now = clock->now();
    bool served = false;
    while (!record.waiters.empty()) {
      Waiter* next = record.waiters.front();
      if (!record.fits(next->request.claim.share, now)) break;
      record.waiters.pop_front();
      next->granted = grant(record, next->request);
      next->wakeUp.notify_one();
      served = true;
    }
    // Those behind wait for the end of the lease before theirs: it has a new one now.
    if (served) {
      for (Waiter* waiter : record.waiters) waiter->wakeUp.notify_one();
    }
    return !record.isFree(now);
  }

  // Ends leases that have expired first, so that callers see the truth. False when the key is free.
  bool refresh(Record& record) {
    const Instant now = clock->now();
    if (now < record.nextEnd()) return true;
    if (record.shares) {
      record.shares->removeEnded(now);
      if (record.shares->empty()) record.shares.reset();
    }
    return handOver(record);
  }

  // Null when the key is free.
  Record* current(std::string_view key) {
    const auto found = records.find(key);
    if (found == records.end()) return nullptr;
    if (refresh(found->second)) return &found->second;
    records.erase(found);
    return nullptr;
  }

  // Takes the key, or its share of it, from a claim: for the next waiters, or altogether. False when the
  // claim does not have it.
  bool free(const Claim& claim) {
    Record* const record = current(claim.key);
    if (record == nullptr) return false;
    if (record->shares) {
      if (!record->shares->remove(claim.token)) return false;
      if (record->shares->empty()) record->shares.reset();
    } else {
      if (record->token != claim.token) return false;
      record->end = Instant::min();
    }
    if (!handOver(*record)) records.erase(records.find(claim.key));
    return true;
  }

  // Leases that ended unseen take memory until somebody asks for their key: clear them away now and then.
  void sweep() {
    if (records.size() < sweepAt) return;
    const Instant now = clock->now();
    std::erase_if(records, [&](const auto& entry) {
      return isOver(entry.second, now) && entry.second.waiters.empty();
    });
    sweepAt = std::max<std::size_t>(1024, 2 * records.size());
  }

  static bool isOver(const Record& record, Instant now) {
    return record.shares ? record.shares->last().end <= now : record.end <= now;
  }

  RenewOutcome renew(Renewal& renewal);

  // What one attempt comes to.
  AcquireResult acquire(const AcquireRequest& request) {
    Record* record = current(request.claim.key);
    if (record == nullptr) {
      sweep();
      record = &records.try_emplace(std::string(request.claim.key)).first->second;
      return grant(*record, request);
    }
    const Instant now = clock->now();
    if (record->shares) {
      if (record->shares->extend(request.claim.token, now + request.ttl))
        return Granted{now, request.ttl, record->shares->find(request.claim.token)->fence};
      checkLimit(*record, request.claim);
      if (record->waiters.empty() && record->fits(request.claim.share, now)) return grant(*record, request);
    } else if (record->token == request.claim.token) {
      record->end = now + request.ttl;
      return Granted{now, request.ttl, record->fence};
    }
    return Busy{std::chrono::ceil<std::chrono::milliseconds>(record->nextEnd() - now)};
  }
};

RenewOutcome MemoryDriver::State::renew(Renewal& renewal) {
  Record* const record = current(renewal.claim.key);
  if (record == nullptr) return RenewOutcome::notOwner;
  const Instant now = clock->now();
  if (record->shares) {
    if (!record->shares->extend(renewal.claim.token, now + renewal.ttl)) return RenewOutcome::notOwner;
  } else {
    if (record->token != renewal.claim.token) return RenewOutcome::notOwner;
    record->end = now + renewal.ttl;
  }
  // The lease may end sooner than they know.
  for (Waiter* waiter : record->waiters) waiter->wakeUp.notify_one();
  renewal.leasedFrom = now;
  renewal.leasedFor = renewal.ttl;
  return RenewOutcome::renewed;
}

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
  const auto isRefused = [&] {
    const auto& share = request.claim.share;
    return record.shares && share && share->limit != record.shares->limit();
  };
  while (!waiter.granted && !isRefused() && !stop.stop_requested() && state_->clock->now() < waitUntil) {
    if (state_->clock->now() >= record.nextEnd()) {
      state_->refresh(record);
    } else {
      state_->clock->wait(held, waiter.wakeUp, std::min(waitUntil, record.nextEnd()));
    }
  }
  if (waiter.granted) return *waiter.granted;
  record.waiters.erase(place);
  // Those behind it may fit where it did not.
  if (record.shares) state_->handOver(record);
  checkLimit(record, request.claim);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(record.nextEnd() - state_->clock->now());
  return Busy{std::max(left, left.zero())};
}

void MemoryDriver::renew(std::span<Renewal> renewals, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  for (Renewal& renewal : renewals) renewal.outcome = state_->renew(renewal);
}

ReleaseOutcome MemoryDriver::release(const Claim& claim, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  return state_->free(claim) ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

std::optional<Holder> MemoryDriver::holder(std::string_view key, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  const Record* record = state_->current(key);
  if (record == nullptr) return std::nullopt;
  return record->holder(state_->clock->now());
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
      if (key.starts_with(prefix) && !State::isOver(record, now)) found.emplace_back(key, record.holder(now));
    }
  }
  // Outside the mutex, so that the visitor may use the driver.
  for (const auto& [key, holder] : found) {
    if (!visit(key, holder)) return;
  }
}

bool MemoryDriver::breakLock(std::string_view key, Instant /*deadline*/, const Holder* shown) {
  const auto held = state_->mutex.lock();
  const Record* record = state_->current(key);
  if (record == nullptr) return false;
  const Holder now = record->holder(state_->clock->now());
  std::vector<Token> lost;
  if (!record->shares) {
    if (shown == nullptr || shown->fence == now.fence) lost.push_back(record->token);
  } else {
    for (const auto& [token, grant] : record->shares->grants()) {
      if (shown == nullptr || shown->grantId == std::to_string(grant.number)) lost.push_back(token);
    }
  }
  for (const Token& token : lost) state_->free({key, token, {}});
  state_->lossListeners.tell(lost);
  return !lost.empty();
}

std::vector<ShareHolder> MemoryDriver::shareHolders(std::string_view key, Instant /*deadline*/) {
  const auto held = state_->mutex.lock();
  const Record* record = state_->current(key);
  std::vector<ShareHolder> holders;
  if (record == nullptr || !record->shares) return holders;
  const Instant now = state_->clock->now();
  for (const auto& [token, grant] : record->shares->grants()) {
    holders.push_back(
        {grant.owner, grant.share, std::chrono::ceil<std::chrono::milliseconds>(grant.end - now)});
  }
  return holders;
}

bool MemoryDriver::resize(std::string_view key, std::uint32_t limit, Instant /*deadline*/) {
  checkShare({.weight = 1, .limit = limit});
  const auto held = state_->mutex.lock();
  Record* record = state_->current(key);
  if (record == nullptr || !record->shares) return false;
  record->shares->resize(limit);
  state_->handOver(*record);
  for (Waiter* waiter : record->waiters) waiter->wakeUp.notify_one();
  return true;
}

void MemoryDriver::addLossListener(std::weak_ptr<LossListener> listener) {
  state_->lossListeners.add(std::move(listener));
}

void* MemoryDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(SharedRecords)) return capabilityOf<SharedRecords>(state_->shared, type);
  return capabilityOf<Waitable, Browsable, Breakable, LossReporting, Permits, RateDriver>(*this, type);
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
