#include "lock/keeper/failover_doubt.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::detail {

namespace {

// How many releases are sent again after a failover, since they may not have reached the server that takes
// over. More are hardly confirmed within the delay of a replication.
constexpr std::size_t mostFreed = 1024;

// After that, the server that would take over has certainly got a release.
constexpr std::chrono::minutes replicatedAfter{1};

}  // namespace

FailoverDoubt::FailoverDoubt(DoubtReporting* driver, LeaseTable& leases, UnawaitedReleases& releases,
                             std::shared_ptr<Clock> clock, std::chrono::nanoseconds operationTimeout,
                             std::mutex& mutex, std::function<void(Instant)> wakeUpAt)
    : driver_(driver),
      leases_(leases),
      releases_(releases),
      clock_(std::move(clock)),
      operationTimeout_(operationTimeout),
      mutex_(mutex),
      wakeUpAt_(std::move(wakeUpAt)) {}

void FailoverDoubt::start() {
  if (driver_ != nullptr) checkEvery_ = driver_->checkEvery();
  if (checkEvery_) freed_.resize(mostFreed);
}

void FailoverDoubt::leaseAdded() {
  if (!checkEvery_) return;
  const std::lock_guard held(mutex_);
  planCheck(clock_->now());
}

void FailoverDoubt::leaseFreed(Lease& lease) noexcept {
  if (!checkEvery_) return;
  const Instant end = lease.endOfLease();
  std::shared_ptr<Lease> forgotten;  // when the mutex is free
  const std::lock_guard held(mutex_);
  if (lease.heldUntil() <= lastDoubt_.load()) return releases_.abandon(lease.claim(), end);
  forgotten = std::exchange(freed_[nextFreed_], lease.shared_from_this());
  nextFreed_ = (nextFreed_ + 1) % freed_.size();
  const Instant now = clock_->now();
  checkUntil_ = std::max(checkUntil_, std::min(end, saturatingAdd(now, replicatedAfter)));
  planCheck(now);
}

void FailoverDoubt::arise() noexcept {
  const Instant now = clock_->now();
  // Before any lease is asked for again: one that is added later sees it.
  lastDoubt_ = now;
  for (LeaseTable::Part& part : leases_.parts()) {
    const std::lock_guard held(part.mutex);
    for (std::size_t index = 0; index < part.ends.size(); ++index) askAgain(part, part.ends.at(index), now);
  }
  wakeUpAt_(now);
  // The new server may lack releases that the former one has confirmed: it would keep the keys until their
  // leases end.
  for (const auto& each : freed_) {
    if (each) releases_.abandon(each->claim(), each->endOfLease());
  }
  std::ranges::fill(freed_, nullptr);
}

void FailoverDoubt::askAgain(LeaseTable::Part& part, Lease& lease, Instant now) noexcept {
  lease.state.store(LockState::suspect, std::memory_order_release);
  part.renewals.remove(lease);
  lease.renewAt = now;
  part.renewals.add(lease);
}

void FailoverDoubt::check(std::unique_lock<std::mutex>& held) {
  nextCheck_ = Instant::max();
  checking_ = true;
  held.unlock();
  driver_->checkServer(clock_->now() + operationTimeout_);
  held.lock();
  checking_ = false;
  const Instant now = clock_->now();
  if (!leases_.isEmpty() || now < checkUntil_) planCheck(now);
}

void FailoverDoubt::planCheck(Instant now) {
  if (checking_ || nextCheck_ != Instant::max()) return;
  nextCheck_ = saturatingAdd(now, *checkEvery_);
  wakeUpAt_(nextCheck_);
}

}  // namespace lockkeeper::detail
