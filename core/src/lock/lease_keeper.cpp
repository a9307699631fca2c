#include "lock/lease_keeper.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::detail {

namespace {

// One write carries so many renewals at most, so that a batch's reply comes well before its deadline.
constexpr std::size_t largestBatch = 128;

}  // namespace

/// A loss that is decided, to be told outside the mutex.
struct LeaseKeeper::Loss {
  std::shared_ptr<Lease> lease;

  void tell(const Environment& environment, std::string_view store) {
    // The next caller of this process may go to the store from now on: it is the store that excludes it.
    { const LocalQueue::Turn ended = std::move(lease->turn); }
    lease->lost.request_stop();
    environment.tell({.kind = EventKind::lost,
                      .key = lease->key,
                      .store = store,
                      .began = lease->acquiredAt,
                      .ended = environment.clock->now(),
                      .fence = lease->fence,
                      .loss = lease->lossReason});
  }
};

LeaseKeeper::LeaseKeeper(std::shared_ptr<LockDriver> driver, Environment environment, std::string owner,
                         std::chrono::nanoseconds operationTimeout, std::chrono::nanoseconds retryPause)
    : driver_(std::move(driver)),
      store_(driver_->name()),
      environment_(std::move(environment)),
      operationTimeout_(operationTimeout),
      abandoned_(driver_, environment_, std::move(owner), operationTimeout, retryPause) {}

void LeaseKeeper::start() {
  std::call_once(started_, [this] {
    if (!watchman_.joinable()) watchman_ = std::thread([self = shared_from_this()] { self->watch(); });
    renewer_ = std::thread([self = shared_from_this()] { self->renewAll(); });
  });
}

void LeaseKeeper::add(std::shared_ptr<Lease> lease) {
  const std::lock_guard held(mutex_);
  if (lease->validUntil.load(std::memory_order_relaxed) < watchSleepsUntil_) watchWakeUp_.notify_one();
  if (lease->renewAt < renewSleepsUntil_) renewWakeUp_.notify_one();
  lease->place = leases_.size();
  leases_.push_back(std::move(lease));
}

bool LeaseKeeper::remove(Lease& lease) {
  const std::lock_guard held(mutex_);
  if (!lease.alive()) return false;
  lease.state.store(LockState::released, std::memory_order_release);
  untrack(lease);
  return true;
}

void LeaseKeeper::untrack(const Lease& lease) {
  leases_.back()->place = lease.place;
  std::swap(leases_[lease.place], leases_.back());
  leases_.pop_back();
}

bool LeaseKeeper::stillRuns(Lease& lease) {
  // A renewal may be setting validUntil right now: decide under the mutex, once and for ever.
  std::unique_lock held(mutex_);
  if (!lease.alive()) return false;
  if (environment_.clock->now() < lease.validUntil.load(std::memory_order_relaxed)) return true;
  Loss loss = lose(lease, LossReason::leaseEnded);
  held.unlock();
  loss.tell(environment_, store_);
  return false;
}

LeaseKeeper::Loss LeaseKeeper::lose(Lease& lease, LossReason reason) {
  const bool heldTooLong =
      reason == LossReason::leaseEnded && lease.validUntil.load(std::memory_order_relaxed) == lease.holdUntil;
  lease.lossReason = heldTooLong ? LossReason::maxHold : reason;
  lease.state.store(LockState::lost, std::memory_order_release);
  std::shared_ptr<Lease> shared = leases_[lease.place];
  untrack(lease);
  return {std::move(shared)};
}

bool LeaseKeeper::renewed(Lease& lease, const Renewal& renewal, Instant began) {
  const RenewOutcome outcome = renewal.outcome;
  std::unique_lock held(mutex_);
  if (!lease.alive()) return false;
  const Instant now = environment_.clock->now();
  const Instant end = lease.validUntil.load(std::memory_order_relaxed);

  if (outcome == RenewOutcome::notOwner || outcome == RenewOutcome::ownershipUncertain || now >= end) {
    const LossReason reason = now >= end                          ? LossReason::leaseEnded
                              : outcome == RenewOutcome::notOwner ? LossReason::notOwner
                                                                  : LossReason::ownershipUncertain;
    Loss loss = lose(lease, reason);
    held.unlock();
    loss.tell(environment_, store_);
    return false;
  }
  Event event{.kind = EventKind::renewed, .key = lease.key, .store = store_, .began = began, .ended = now};
  if (outcome == RenewOutcome::renewed) {
    lease.leased(renewal.leasedFrom);
    lease.state.store(LockState::held, std::memory_order_release);
    held.unlock();
    environment_.tell(event);
    return true;
  }
  if (lease.renew == Renew::automatic) {
    lease.renewAt = now + lease.ttl / 10;
    if (lease.renewAt < renewSleepsUntil_) renewWakeUp_.notify_one();
  }
  lease.state.store(LockState::suspect, std::memory_order_release);
  held.unlock();
  event.kind = EventKind::renewalFailed;
  event.error =
      outcome == RenewOutcome::unavailable ? ErrorCode::storeUnavailable : ErrorCode::outcomeUnknown;
  event.text = renewal.cause;
  event.remaining = end - now;
  environment_.tell(event);
  return false;
}

void LeaseKeeper::abandon(const Claim& claim, Instant until) {
  const std::lock_guard held(mutex_);
  abandoned_.add(claim, until);
  renewWakeUp_.notify_one();
}

void LeaseKeeper::shutDown() {
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
    watchWakeUp_.notify_one();
    renewWakeUp_.notify_one();
  }
  for (std::thread* thread : {&watchman_, &renewer_}) {
    // The last Lock may have died inside a lost() callback, that is, on one of these very threads.
    if (thread->get_id() == std::this_thread::get_id()) {
      thread->detach();
    } else if (thread->joinable()) {
      thread->join();
    }
  }
}

Instant LeaseKeeper::nextEnd() const {
  Instant next = Instant::max();
  for (const auto& lease : leases_) next = std::min(next, lease->validUntil.load(std::memory_order_relaxed));
  return next;
}

Instant LeaseKeeper::nextRenewal() const {
  Instant next = abandoned_.due();
  for (const auto& lease : leases_) next = std::min(next, lease->renewAt);
  return next;
}

void LeaseKeeper::watch() {
  std::unique_lock held(mutex_);
  while (!stopping_) {
    const Instant now = environment_.clock->now();
    const auto ended = std::find_if(leases_.begin(), leases_.end(), [&](const auto& lease) {
      return lease->validUntil.load(std::memory_order_relaxed) <= now;
    });
    if (ended != leases_.end()) {
      Loss loss = lose(**ended, LossReason::leaseEnded);
      held.unlock();
      loss.tell(environment_, store_);
      held.lock();
      continue;
    }
    watchSleepsUntil_ = nextEnd();
    environment_.clock->wait(held, watchWakeUp_, watchSleepsUntil_);
    watchSleepsUntil_ = Instant::min();
  }
}

void LeaseKeeper::renewAll() {
  std::unique_lock held(mutex_);
  while (!stopping_) {
    const Instant next = nextRenewal();
    if (environment_.clock->now() >= next) {
      renewBatch(held);
      if (environment_.clock->now() >= abandoned_.due()) abandoned_.release(held);
      continue;
    }
    renewSleepsUntil_ = next;
    environment_.clock->wait(held, renewWakeUp_, next);
    renewSleepsUntil_ = Instant::min();
  }
  abandoned_.release(held);
}

void LeaseKeeper::renewBatch(std::unique_lock<std::mutex>& held) {
  const Instant now = environment_.clock->now();
  Instant deadline = now + operationTimeout_;
  std::vector<std::shared_ptr<Lease>> batch;
  std::vector<Renewal> renewals;
  for (const auto& lease : leases_) {
    // Those due soon come along: one round trip for all.
    if (lease->renewAt == Instant::max() || lease->renewAt - lease->ttl / 30 > now) continue;
    // A renewal that comes after the lease's end is of no use to anyone.
    deadline = std::min(deadline, lease->validUntil.load(std::memory_order_relaxed));
    batch.push_back(lease);
    renewals.push_back({lease->claim(), lease->ttlMilliseconds(), RenewOutcome::unknown, now});
    if (batch.size() == largestBatch) break;
  }
  if (batch.empty()) return;

  held.unlock();
  try {
    driver_->renew(renewals, deadline);
  } catch (...) {
    // A driver that breaks its contract: the outcomes that it did not write are unknown.
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    renewed(*batch[i], renewals[i], now);
  }
  batch.clear();  // What it owns may be the last of a lease: not under the mutex.
  held.lock();
}

}  // namespace lockkeeper::detail
