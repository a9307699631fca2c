#include "holdings.h"

#include <algorithm>

namespace lockkeeper::migration {

Holdings::Holding& Holdings::note(const Claim& claim, Phase phase, std::uint64_t lease, Instant now) {
  if (holdings_.size() >= sweepAt_) {
    std::erase_if(holdings_, [&](const auto& entry) { return entry.second.end <= now; });
    sweepAt_ = std::max<std::size_t>(1024, 2 * holdings_.size());
  }
  const auto [place, isNew] = holdings_.try_emplace(claim.token);
  Holding& holding = place->second;
  // One that has ended was told to the others as drained: it must not come back in its old phase.
  if (isNew || holding.end <= now) holding = {std::string(claim.key), phase, Instant::max(), lease};
  holding.end = Instant::max();
  return holding;
}

Holdings::Holding* Holdings::find(const Claim& claim, Instant now) {
  const auto found = holdings_.find(claim.token);
  const bool here = found != holdings_.end() && found->second.key == claim.key && found->second.end > now;
  return here ? &found->second : nullptr;
}

void Holdings::erase(const Claim& claim) {
  const auto found = holdings_.find(claim.token);
  if (found != holdings_.end() && found->second.key == claim.key) holdings_.erase(found);
}

bool Holdings::drained(const Rules& target, Instant now) const {
  return std::all_of(holdings_.begin(), holdings_.end(), [&](const auto& entry) {
    const Holding& holding = entry.second;
    return holding.phase == Phase::both || holding.end <= now || holding.phase == target.phaseOf(holding.key);
  });
}

bool Holdings::noneAlone(Instant now) const {
  return std::all_of(holdings_.begin(), holdings_.end(), [&](const auto& entry) {
    return entry.second.phase == Phase::both || entry.second.end <= now;
  });
}

}  // namespace lockkeeper::migration
