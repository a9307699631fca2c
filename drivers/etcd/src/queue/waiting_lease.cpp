#include "queue/waiting_lease.h"

#include <algorithm>

namespace lockkeeper::etcd {

namespace {

// So long the claims of a process that has died delay the next one in the queue.
constexpr std::chrono::seconds length{5};

// A caller that got no answer asks again within this time: then its claim is resumed, and nobody has to move.
constexpr std::chrono::seconds grace{1};

}  // namespace

std::int64_t WaitingLease::id(Instant deadline) {
  {
    const std::lock_guard guard(mutex_);
    if (fresh() && !overdue()) return lease_.id;
  }
  // Others may wait on it already: it is kept if it can be, and not replaced.
  keep(deadline);
  if (const std::int64_t kept = current(); kept != 0) return kept;
  const Lease made = leases_.grant(length, deadline);
  std::int64_t result = 0;
  {
    const std::lock_guard guard(mutex_);
    if (lease_.id == 0) lease_ = made;
    result = lease_.id;
  }
  if (result != made.id) leases_.end(made.id);  // another thread was first
  return result;
}

std::int64_t WaitingLease::current() const {
  const std::lock_guard guard(mutex_);
  return lease_.id;
}

bool WaitingLease::fresh() const { return clock_.now() < saturatingAdd(lease_.from, lease_.length / 2); }

bool WaitingLease::overdue() const {
  const Instant now = clock_.now();
  return std::any_of(abandoned_.begin(), abandoned_.end(),
                     [&](const auto& each) { return now >= saturatingAdd(each.second, grace); });
}

Instant WaitingLease::due() const {
  const std::lock_guard guard(mutex_);
  if (lease_.id == 0) return Instant::max();
  Instant next =
      std::max(saturatingAdd(lease_.from, lease_.length / 4), saturatingAdd(triedAt_, lease_.length / 10));
  for (const auto& [claim, since] : abandoned_) next = std::min(next, saturatingAdd(since, grace));
  return next;
}

bool WaitingLease::keep(Instant deadline) {
  KeptLease one;
  {
    const std::lock_guard guard(mutex_);
    if (lease_.id == 0) return true;
    if (overdue()) {
      clear();
      return false;
    }
    one.id = lease_.id;
    triedAt_ = clock_.now();
  }
  leases_.keep(std::span(&one, 1), deadline);
  if (one.error) return true;
  const std::lock_guard guard(mutex_);
  if (lease_.id != one.id) return true;
  if (one.kept) {
    lease_ = *one.kept;
  } else {
    clear();
  }
  return one.kept.has_value();
}

void WaitingLease::doubt() {
  const std::lock_guard guard(mutex_);
  lease_.from = Instant::min();
}

bool WaitingLease::giveUp(std::int64_t id) noexcept {
  const std::lock_guard guard(mutex_);
  if (id == 0 || lease_.id != id) return false;
  clear();
  return true;
}

void WaitingLease::clear() noexcept {
  lease_ = {};
  abandoned_.clear();
}

void WaitingLease::abandoned(const std::string& claim, std::int64_t id) noexcept {
  const std::lock_guard guard(mutex_);
  if (id == 0 || lease_.id != id) return;
  try {
    abandoned_.emplace(claim, clock_.now());
  } catch (...) {  // no memory: at once, then
    clear();
  }
}

void WaitingLease::resumed(const std::string& claim) {
  const std::lock_guard guard(mutex_);
  abandoned_.erase(claim);
}

}  // namespace lockkeeper::etcd
