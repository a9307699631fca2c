#pragma once

#include <chrono>
#include <stop_token>

#include "lockkeeper/clock.h"
#include "lockkeeper/random.h"

namespace lockkeeper::detail {

/// The waits between attempts at a busy key: the n-th is random in [d/2, d] with d = initial * 2^n, at most
/// cap. Half of each wait is fixed, so that no one spins; half is random, so that contenders do not march in
/// step.
class Backoff {
 public:
  Backoff(std::chrono::nanoseconds initial, std::chrono::nanoseconds cap) : next_(initial), cap_(cap) {}

  std::chrono::nanoseconds next(Random& random);

 private:
  std::chrono::nanoseconds next_;
  std::chrono::nanoseconds cap_;
};

/// Waits until `until`; returns early, with false, when `stop` is triggered.
bool waitUntil(Clock& clock, Instant until, const std::stop_token& stop);

}  // namespace lockkeeper::detail
