#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/error.h"

namespace lockkeeper::detail {

/// While a store is down, each caller's attempts fail several times a second. Of those that fail with the
/// same error, the listener is told the first one, and then at most one a second. Thread-safe.
class ToldFailures {
 public:
  /// How many were left out since the last one that was told; empty when this one, of `now`, is left out,
  /// too.
  std::optional<std::size_t> admit(ErrorCode code, Instant now) {
    const std::lock_guard held(mutex_);
    Kind& its = kinds_[static_cast<std::size_t>(code)];
    if (now < its.quietUntil) {
      ++its.leftOut;
      return std::nullopt;
    }
    its.quietUntil = now + std::chrono::seconds{1};
    return std::exchange(its.leftOut, 0);
  }

 private:
  struct Kind {
    Instant quietUntil = Instant::min();
    std::size_t leftOut = 0;
  };

  std::mutex mutex_;
  std::array<Kind, static_cast<std::size_t>(ErrorCode::forked) + 1> kinds_;
};

}  // namespace lockkeeper::detail
