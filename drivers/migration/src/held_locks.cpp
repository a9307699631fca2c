#include "held_locks.h"

#include <algorithm>

namespace lockkeeper::migration {

HeldLocks::HeldLock& HeldLocks::note(const Claim& claim, Phase phase, std::uint64_t lease, Instant now) {
  if (locks_.size() >= sweepAt_) {
    std::erase_if(locks_, [&](const auto& entry) { return entry.second.end <= now; });
    sweepAt_ = std::max<std::size_t>(1024, 2 * locks_.size());
  }
  const auto [place, isNew] = locks_.try_emplace(claim.token);
  HeldLock& heldLock = place->second;
  // One that has ended was told to the others as drained: it must not come back in its old phase.
  if (isNew || heldLock.end <= now) heldLock = {std::string(claim.key), phase, Instant::max(), lease};
  heldLock.end = Instant::max();
  return heldLock;
}

HeldLocks::HeldLock* HeldLocks::find(const Claim& claim, Instant now) {
  const auto found = locks_.find(claim.token);
  const bool here = found != locks_.end() && found->second.key == claim.key && found->second.end > now;
  return here ? &found->second : nullptr;
}

void HeldLocks::erase(const Claim& claim) {
  const auto found = locks_.find(claim.token);
  if (found != locks_.end() && found->second.key == claim.key) locks_.erase(found);
}

bool HeldLocks::drained(const Rules& target, Instant now) const {
  return std::all_of(locks_.begin(), locks_.end(), [&](const auto& entry) {
    const HeldLock& heldLock = entry.second;
    return heldLock.phase == Phase::both || heldLock.end <= now ||
           heldLock.phase == target.phaseOf(heldLock.key);
  });
}

bool HeldLocks::noneAlone(Instant now) const {
  return std::all_of(locks_.begin(), locks_.end(), [&](const auto& entry) {
    return entry.second.phase == Phase::both || entry.second.end <= now;
  });
}

}  // namespace lockkeeper::migration
