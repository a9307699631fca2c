#pragma once

#include <chrono>
#include <stop_token>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// The waits between attempts at something busy: the n-th is random in [d/2, d] with d = initial * 2^n, at
/// most cap. Half of each wait is fixed, so that no one spins; half is random, so that contenders do not
/// march in step. One thread at a time.
class LOCKKEEPER_CORE_EXPORT Backoff {
 public:
  /// Neither may be negative.
  constexpr Backoff(std::chrono::nanoseconds initial, std::chrono::nanoseconds cap)
      : next_(initial), cap_(cap) {}

  /// The next wait. Blocks for nothing.
  std::chrono::nanoseconds next(Random& random);

 private:
  std::chrono::nanoseconds next_;
  std::chrono::nanoseconds cap_;
};

/// Blocks until `until`; returns early, with false, when `stop` is triggered. Thread-safe.
LOCKKEEPER_CORE_EXPORT bool pauseUntil(Clock& clock, Instant until, const std::stop_token& stop = {});

}  // namespace lockkeeper
