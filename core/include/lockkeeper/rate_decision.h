#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lockkeeper/error.h"

namespace lockkeeper {

/// What came of asking a limit. Lengths of time count from the answer, are rounded up, and are exact as long
/// as nobody refunds or resets.
struct Decision {
  bool allowed = false;

  /// What is left for others, under `policy`, after this call.
  std::int64_t remaining = 0;

  /// When the same call may be allowed; 0 when this one was.
  std::chrono::microseconds retryAfter{0};

  /// When nothing is used any more, if nobody asks again.
  std::chrono::microseconds resetAfter{0};

  /// The name of the policy that refused; when allowed, of the one with the least remaining.
  std::string policy{};

  /// Set when the store could not be asked: why, and then `allowed` is what the policy's outage setting says.
  /// Empty when the store, or what is known of it, has decided.
  std::optional<ErrorCode> outage{};
  /// What the store or the way to it said of it, for logs; no secret is in it.
  std::string outageReason{};

  /// `allowed`.
  explicit operator bool() const noexcept { return allowed; }
};

}  // namespace lockkeeper
