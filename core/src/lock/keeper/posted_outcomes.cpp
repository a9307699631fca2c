#include "lock/keeper/posted_outcomes.h"

#include <utility>

namespace lockkeeper::detail {

PostedOutcomes::PostedOutcomes(const Environment& environment, std::string store, UnawaitedReleases& releases,
                               FailoverDoubt& doubt, std::mutex& mutex)
    : environment_(environment),
      store_(std::move(store)),
      releases_(releases),
      doubt_(doubt),
      mutex_(mutex) {}

void PostedOutcomes::answered(Lease& lease, ReleaseOutcome outcome) noexcept {
  const bool foundLost = lease.ending == Ending::valid && outcome != ReleaseOutcome::released;
  if (foundLost) {
    lease.lossReason =
        outcome == ReleaseOutcome::notOwner ? LossReason::notOwner : LossReason::ownershipUncertain;
  }
  if (outcome == ReleaseOutcome::released) doubt_.leaseFreed(lease);
  if (lease.ending != Ending::lost)
    tell(lease, foundLost ? environment_.clock->now() : lease.releasedAt, foundLost);
  releases_.ended();
}

void PostedOutcomes::failed(Lease& lease, ErrorCode code, std::string_view text) noexcept {
  const Instant now = environment_.clock->now();
  environment_.tell({.kind = EventKind::attemptFailed,
                     .key = lease.key(),
                     .store = store_,
                     .began = lease.releasedAt,
                     .ended = now,
                     .error = code,
                     .text = text,
                     .trace = lease.trace()});
  {
    const std::lock_guard held(mutex_);
    releases_.abandon(lease.claim(), lease.endAtLatest(now));
  }
  if (lease.ending != Ending::lost) tell(lease, now, false, code);
  releases_.ended();
}

void PostedOutcomes::tell(const Lease& lease, Instant ended, bool foundLost, std::optional<ErrorCode> error) {
  environment_.tell({.kind = foundLost ? EventKind::lost : EventKind::released,
                     .key = lease.key(),
                     .store = store_,
                     .began = lease.acquiredAt,
                     .ended = ended,
                     .attempts = 1,
                     .error = error,
                     .fence = lease.fence(),
                     .share = lease.sharing(),
                     .loss = lease.lossReason,
                     .trace = lease.trace()});
}

}  // namespace lockkeeper::detail
