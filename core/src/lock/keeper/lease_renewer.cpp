#include "lock/keeper/lease_renewer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::detail {

namespace {

// The most renewals in one call of the driver. Many locks then need few calls, and no call keeps the store's
// connection busy for long.
constexpr std::size_t largestGroup = 1024;

// The longest pause before a lease in doubt is asked for again after a failure. Short leases have shorter
// ones.
constexpr std::chrono::nanoseconds doubtPause = std::chrono::milliseconds{500};

}  // namespace

/// Leases that are renewed together.
struct LeaseRenewer::Group {
  std::vector<std::shared_ptr<Lease>> leases{};
  std::vector<Renewal> renewals{};
  std::vector<bool> told{};  // their outcomes
  Instant lastEnd{};
};

LeaseRenewer::LeaseRenewer(std::shared_ptr<LockDriver> driver, const Environment& environment,
                           LeaseTable& leases, LossTeller& losses, FailoverDoubt& doubt,
                           UnawaitedReleases& releases, std::chrono::nanoseconds operationTimeout,
                           std::mutex& mutex, std::function<void(Instant)> planned)
    : driver_(std::move(driver)),
      store_(driver_->name()),
      environment_(environment),
      leases_(leases),
      losses_(losses),
      doubt_(doubt),
      releases_(releases),
      operationTimeout_(operationTimeout),
      mutex_(mutex),
      planned_(std::move(planned)) {}

// With the keeper's mutex held. Allocates all memory before it takes a lease out of the table: if that fails,
// all leases are still due.
LeaseRenewer::Group LeaseRenewer::takeDue(Instant now) {
  const std::size_t room = std::min(leases_.plannedRenewals(), largestGroup);
  Group group{.lastEnd = now};
  group.told.resize(room);
  group.leases.reserve(room);
  group.renewals.reserve(room);
  const std::span<LeaseTable::Part> parts = leases_.parts();
  for (std::size_t each = 0; each < parts.size(); ++each) {
    LeaseTable::Part& part = parts[(firstPart_ + each) % parts.size()];
    const std::lock_guard held(part.mutex);
    while (!part.renewals.empty() && group.leases.size() < room) {
      Lease& lease = part.renewals.first();
      // Leases that are due soon come along, in the same round trip.
      if (lease.renewAt - lease.length / 30 > now) break;
      part.renewals.remove(lease);
      lease.renewAt = Instant::max();
      group.lastEnd = std::max(group.lastEnd, lease.validUntil.load(std::memory_order_relaxed));
      group.leases.push_back(lease.shared_from_this());
      group.renewals.push_back(lease.renewal(now));
    }
  }
  ++firstPart_;
  return group;
}

void LeaseRenewer::renewDue(std::unique_lock<std::mutex>& held) {
  const Instant now = environment_.clock->now();
  Group group = takeDue(now);
  held.unlock();
  const auto tell = [&](std::size_t index, const Renewal& renewal) {
    if (!group.told[index]) renewed(*group.leases[index], renewal, now);
    group.told[index] = true;
  };
  for (std::size_t i = 0; i < group.renewals.size(); ++i) {
    group.renewals[i].told = [&tell, i](const Renewal& renewal) { tell(i, renewal); };
  }
  try {
    // A renewal after the end of all leases of the group would be of no use. A lease that ends before is told
    // lost in time by the loss teller.
    driver_->renew(group.renewals, std::min(now + operationTimeout_, group.lastEnd));
  } catch (...) {
    // A driver that breaks its contract: the outcomes that it did not write are unknown.
  }
  for (std::size_t i = 0; i < group.renewals.size(); ++i) tell(i, group.renewals[i]);
  for (std::size_t i = 0; i < group.renewals.size(); ++i)
    endInTime(*group.leases[i], group.renewals[i].outcome);
  group.leases.clear();  // It may be the last owner of a lease: not under the mutex.
  held.lock();
}

bool LeaseRenewer::renewed(Lease& lease, const Renewal& renewal, Instant began) {
  const RenewOutcome outcome = renewal.outcome;
  LeaseTable::Part& part = leases_.partOf(lease.token);
  std::unique_lock held(part.mutex);
  if (!lease.alive()) {
    // The grant was handed on with its token: the outcome is about the present holder's lease.
    Lease* const next = lease.ending == Ending::handedOn ? part.find(lease.token) : nullptr;
    const auto holder = next != nullptr ? next->shared_from_this() : nullptr;
    held.unlock();
    if (holder) renewed(*holder, renewal, began);
    return false;
  }
  const Instant now = environment_.clock->now();
  const Instant end = lease.validUntil.load(std::memory_order_relaxed);
  if (outcome == RenewOutcome::notOwner || outcome == RenewOutcome::ownerUnknown || now >= end) {
    const LossReason reason = now >= end                          ? LossReason::leaseEnded
                              : outcome == RenewOutcome::notOwner ? LossReason::notOwner
                                                                  : LossReason::ownershipUncertain;
    auto lost = LossTeller::lose(part, lease, reason);
    held.unlock();
    losses_.tellLater(std::move(lost));
    return false;
  }
  part.remove(lease);
  applyOutcome(lease, renewal, now);
  part.add(lease);
  const Instant renewAt = lease.renewAt;
  const Instant newEnd = lease.validUntil.load(std::memory_order_relaxed);
  held.unlock();
  planned_(renewAt);
  losses_.watch(newEnd);
  const bool done = outcome == RenewOutcome::renewed;
  if (!done || !renewal.atLeast) tellOutcome(lease, renewal, began, now, end);
  return done;
}

// For a lease that is still held and was taken from its part, whose mutex is held.
void LeaseRenewer::applyOutcome(Lease& lease, const Renewal& renewal, Instant now) {
  const bool done = renewal.outcome == RenewOutcome::renewed;
  if (done && renewal.atLeast) {
    lease.confirmedFrom = std::max(lease.confirmedFrom, renewal.leasedFrom);
  } else if (done) {
    lease.leased(renewal.leasedFrom, saturated(renewal.leasedFor));
  } else if (lease.renew == Renew::automatic || renewal.atLeast) {
    lease.renewAt = now + lease.length / 10;
  }
  const bool doubtful = doubt_.isAbout(lease);
  // A renewal that was asked for before the doubt arose does not end it.
  if (doubtful) lease.renewAt = done ? now : now + std::min(lease.length / 10, doubtPause);
  lease.state.store(done && !doubtful ? LockState::held : LockState::suspect, std::memory_order_release);
}

void LeaseRenewer::tellOutcome(const Lease& lease, const Renewal& renewal, Instant began, Instant ended,
                               Instant end) {
  Event event{.kind = EventKind::renewed,
              .key = lease.key(),
              .store = store_,
              .began = began,
              .ended = ended,
              .attempts = 1,
              .share = lease.sharing(),
              .trace = lease.trace()};
  if (renewal.outcome != RenewOutcome::renewed) {
    event.kind = EventKind::renewalFailed;
    event.error = renewal.outcome == RenewOutcome::unavailable ? ErrorCode::storeUnavailable
                                                               : ErrorCode::outcomeUnknown;
    event.text = renewal.cause;
    event.remaining = end - ended;
  }
  environment_.tell(event);
}

// A renewal with that outcome may have come to the store after the last one, which was to end the lease in
// time: then the last one is sent again.
void LeaseRenewer::endInTime(const Lease& lease, RenewOutcome outcome) {
  if (lease.ending != Ending::leftToEnd) return;
  if (outcome != RenewOutcome::renewed && outcome != RenewOutcome::unknown) return;
  const Instant now = environment_.clock->now();
  if (now >= lease.heldUntil()) {
    const std::lock_guard held(mutex_);
    releases_.abandon(lease.claim(), lease.endAtLatest(now));
    return;
  }
  Renewal last = lease.lastRenewal(now);
  try {
    driver_->renew({&last, 1}, now + operationTimeout_);
  } catch (...) {
    // A driver that breaks its contract; the lease ends by itself.
  }
}

}  // namespace lockkeeper::detail
