#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"

namespace lockkeeper::testing {

/// A limit in another way than the stores keep it, so that both must be right to agree: a bucket counts its
/// tokens (in periods of 1/parts µs, of which a token takes law.period), a fixed window its uses, a sliding
/// window looks at each use that there ever was. Exact.
class RateModel {
 public:
  explicit RateModel(const RateLaw& law) : law_(law), available_(capacity()) {}

  /// What the store must answer at its time `now`.
  RateOutcome take(std::int64_t cost, std::int64_t times, std::int64_t now) {
    return decide(cost, times, now, true);
  }
  RateOutcome peek(std::int64_t cost, std::int64_t now) { return decide(cost, 1, now, false); }

  /// True when something was used.
  bool refund(std::int64_t cost, std::int64_t now) {
    refillUntil(now);
    if (isBucket(law_.kind)) {
      if (available_ == capacity()) return false;
      available_ = std::min(capacity(), available_ + Wide{cost} * law_.period);
      return true;
    }
    if (used(now) == 0) return false;
    std::int64_t left = cost;
    for (Use& use : uses_) {
      if (use.time < windowStart(now)) continue;
      const std::int64_t given = std::min(left, use.units);
      left -= given;
      use.units -= given;
    }
    std::erase_if(uses_, [](const Use& use) { return use.units == 0; });
    return true;
  }

 private:
  __extension__ using Wide = __int128;

  struct Use {
    std::int64_t time;
    std::int64_t units;
  };
  static constexpr std::ptrdiff_t mostUses = 100'000;  // far more than a window has

  Wide capacity() const { return Wide{law_.limit} * law_.period; }

  void refillUntil(std::int64_t now) {
    if (now <= time_) return;
    if (isBucket(law_.kind)) available_ = std::min(capacity(), available_ + Wide{now - time_} * law_.parts);
    time_ = now;
  }

  std::int64_t windowStart(std::int64_t now) const {
    return law_.kind == RateKind::fixedWindow ? now - now % law_.period : now - law_.period + 1;
  }

  std::int64_t used(std::int64_t now) const {
    std::int64_t units = 0;
    for (auto use = uses_.rbegin(); use != uses_.rend() && use->time >= windowStart(now); ++use)
      units += use->units;
    return units;
  }

  // When the use was made after which, in this window, fewer than `units` came.
  std::int64_t latestUseFollowedBy(std::int64_t units) const {
    auto use = uses_.rbegin();
    for (std::int64_t after = use->units; after < units; after += use->units) ++use;
    return use->time;
  }

  std::int64_t remaining(std::int64_t now) const {
    if (isBucket(law_.kind)) return static_cast<std::int64_t>(available_ / law_.period);
    return law_.limit - used(now);
  }

  std::int64_t ceilParts(Wide amount) const {
    return static_cast<std::int64_t>((std::max<Wide>(amount, 0) + law_.parts - 1) / law_.parts);
  }

  // µs until `cost` fits.
  std::int64_t wait(std::int64_t cost, std::int64_t now) const {
    if (isBucket(law_.kind)) return ceilParts(Wide{cost} * law_.period - available_);
    if (law_.kind == RateKind::fixedWindow) return windowStart(now) + law_.period - now;
    return latestUseFollowedBy(law_.limit - cost + 1) + law_.period - now;
  }

  std::int64_t untilUnused(std::int64_t now) const {
    if (isBucket(law_.kind)) return ceilParts(capacity() - available_);
    if (used(now) == 0) return 0;
    return (law_.kind == RateKind::fixedWindow ? windowStart(now) : uses_.back().time) + law_.period - now;
  }

  RateOutcome decide(std::int64_t cost, std::int64_t times, std::int64_t now, bool charges) {
    refillUntil(now);
    RateOutcome outcome;
    outcome.granted = cost == 0 ? times : std::min(times, remaining(now) / cost);
    if (charges && cost > 0 && outcome.granted > 0) {
      available_ -= Wide{cost} * outcome.granted * law_.period;
      uses_.push_back({now, cost * outcome.granted});
      if (std::ssize(uses_) > mostUses) uses_.erase(uses_.begin(), uses_.end() - mostUses / 2);
    }
    outcome.remaining = remaining(now);
    outcome.resetAfter = std::chrono::microseconds{untilUnused(now)};
    if (outcome.granted < times) outcome.retryAfter = std::chrono::microseconds{wait(cost, now)};
    outcome.storeTime = now;
    return outcome;
  }

  RateLaw law_;
  Wide available_;         // of a bucket
  std::vector<Use> uses_;  // what a window has to count
  std::int64_t time_ = 0;
};

}  // namespace lockkeeper::testing
