#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "lockkeeper/lock_manager.h"

namespace lockkeeper::detail {

/// How much the clocks of client and store may drift apart during one ttl (Redis's own allowance for
/// Redlock).
constexpr std::chrono::nanoseconds driftOf(std::chrono::nanoseconds ttl) {
  return ttl / 100 + std::chrono::milliseconds{2};
}

/// A shorter lease would mostly consist of the requests that it takes.
inline constexpr std::chrono::milliseconds shortestTtl{10};
inline constexpr std::chrono::hours longestTtl{24};

/// The LockOptions of one call, complete.
struct LockTerms {
  std::chrono::milliseconds ttl;
  std::optional<std::chrono::milliseconds> margin;  ///< Empty: a tenth of what the store gives.
  std::chrono::milliseconds waitFor;                ///< `forever`, or at most 24 h.
  Renew renew;
  std::optional<std::chrono::milliseconds> maxHold;  ///< At most 100 years: more is no bound.
  std::stop_token stop;
  std::optional<Share> share;
  bool ahead = false;  ///< As in AcquireRequest.
};

/// `call`, completed by the manager's `defaults` and these by the documented ones; waitFor by `unnamedWait`.
/// Throws std::invalid_argument that names the first value out of range.
LockTerms termsOf(const LockOptions& call, const LockOptions& defaults,
                  std::chrono::milliseconds unnamedWait);

/// `options` with its defaults filled in. Throws std::invalid_argument that names the first value out of
/// range.
ManagerOptions completed(ManagerOptions options);

}  // namespace lockkeeper::detail
