#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// How a limit counts. The word behind each is its name in configurations, where "leaky-meter" is another
/// name of the token bucket: the same limit, seen as a bucket that leaks.
enum class RateKind {
  tokenBucket,    ///< "token-bucket": bursts up to the bucket's size, then the rate. GCRA.
  leakyQueue,     ///< "leaky-queue": callers wait for slots at a constant rate, first come, first served.
  slidingWindow,  ///< "sliding-window": never more than the limit in any window. Keeps each admission.
  fixedWindow,    ///< "fixed-window": the limit in each window of the calendar; twice that around its ends.
};

/// Its name in configurations.
LOCKKEEPER_CORE_EXPORT const char* toString(RateKind kind) noexcept;

/// The bucket kinds, which share one state: when the bucket is full again.
constexpr bool isBucket(RateKind kind) noexcept { return kind <= RateKind::leakyQueue; }

/// A time or a length of time that is exact for every rate: `micros` µs and `parts` / RateLaw::parts of one.
struct RateTime {
  std::int64_t micros = 0;
  std::int64_t parts = 0;  ///< From 0 to below RateLaw::parts.

  friend auto operator<=>(const RateTime&, const RateTime&) = default;
};

/// A policy as whole numbers, for drivers. Made by RatePolicy, which has checked that no number that a driver
/// computes from it (the present time in µs added) reaches 2^53, so that doubles hold them exactly.
struct LOCKKEEPER_CORE_EXPORT RateLaw {
  RateKind kind = RateKind::tokenBucket;
  std::int64_t limit = 1;   ///< What a full bucket or a window holds.
  std::int64_t period = 1;  ///< µs: of a window; or in which a bucket gains `parts`, in lowest terms.
  std::int64_t parts = 1;   ///< 1 for windows.

  /// How long a bucket takes to gain `units`, from 0 to limit.
  RateTime lengthOf(std::int64_t units) const;

  /// The sum.
  constexpr RateTime plus(RateTime left, RateTime right) const {
    const RateTime sum{left.micros + right.micros, left.parts + right.parts};
    return sum.parts < parts ? sum : RateTime{sum.micros + 1, sum.parts - parts};
  }
  /// The difference. `left` must not be less than `right`.
  constexpr RateTime minus(RateTime left, RateTime right) const {
    const RateTime difference{left.micros - right.micros, left.parts - right.parts};
    return difference.parts >= 0 ? difference : RateTime{difference.micros - 1, difference.parts + parts};
  }
  /// How many units a bucket gains in `length`, rounded down; 2^53 at most.
  std::int64_t unitsIn(RateTime length) const;

  friend bool operator==(const RateLaw&, const RateLaw&) = default;
};

/// `time`, rounded up to whole microseconds.
constexpr std::chrono::microseconds roundedUp(RateTime time) {
  return std::chrono::microseconds{time.micros + (time.parts > 0 ? 1 : 0)};
}

}  // namespace lockkeeper
