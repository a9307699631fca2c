#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// Who renews a lease.
enum class Renew {
  automatic,  ///< The manager renews the lease until it is released, lost, or maxHold has passed.
  manual,     ///< The lease ends after ttl unless Lock::renew() is called.
};

/// How one lock is taken and kept. All lengths are milliseconds; values outside their range are refused with
/// std::invalid_argument before anything is sent.
struct LockOptions {
  /// How long the store keeps the lock for a holder that has gone silent: 10 ms to 24 h. Shorter frees the
  /// key of a dead holder sooner; longer rides out longer outages of the store.
  std::chrono::milliseconds ttl{std::chrono::seconds{30}};

  /// How long to wait for a busy key, or for a store that is down: 0 (one attempt) to 24 h.
  std::chrono::milliseconds waitFor{0};

  Renew renew = Renew::automatic;

  /// The longest that the lock may be held: then it is Lost, however well its renewals went. A bound on
  /// holders that hang. Default: none. At least 1 ms.
  std::optional<std::chrono::milliseconds> maxHold{};

  /// How long before the end of the lease lost() fires and valid() turns false, so that work can stop in
  /// time. Default: a tenth of ttl. Must leave at least half of ttl to work in.
  std::optional<std::chrono::milliseconds> safetyMargin{};

  /// Ends a wait early.
  std::stop_token stop{};
};

/// Throws std::invalid_argument that names the first option out of range, and what is allowed. Every lock is
/// checked so; this is for those who want to know before the first one.
LOCKKEEPER_CORE_EXPORT void checkOptions(const LockOptions& options);

}  // namespace lockkeeper
