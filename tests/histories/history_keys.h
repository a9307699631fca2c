#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "lockkeeper/rate_policy.h"

namespace lockkeeper::test {

/// What the processes of a history lock.
inline constexpr std::array historyKeys{"a", "b", "c"};

/// A key with so many permits.
inline constexpr const char* pool = "pool";
inline constexpr std::uint32_t poolPermits = 3;

/// A limit that they meet all the time.
inline const RatePolicy& historyPolicy() {
  static const RatePolicy policy("calls", {.rate = {10, std::chrono::seconds{1}}, .burst = 5});
  return policy;
}

/// A second or two are the shortest that each store takes.
inline constexpr std::chrono::seconds historyTtl{2};

/// How long a call may take besides its wait: an operationTimeout and an I/O timeout, on a machine that is
/// busy with other things.
inline constexpr std::chrono::seconds longestAnswer{2 + 3 + 5};

}  // namespace lockkeeper::test
