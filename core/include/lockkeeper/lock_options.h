#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "lockkeeper/export.h"
#include "lockkeeper/permit/share.h"

namespace lockkeeper {

/// Who renews a lease.
enum class Renew {
  automatic,  ///< The manager renews the lease until it is released, lost, or maxHold has passed.
  manual,     ///< The lease ends after ttl unless Lock::renew() is called.
};

/// No bound. In a call, it removes a bound on waitFor or maxHold that the manager's defaults set.
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

/// How one lock is taken and kept. An option that a call does not set comes from ManagerOptions::lock; if it
/// is not set there either, it has the default given here. Values outside their range are refused with
/// std::invalid_argument before anything is sent.
struct LockOptions {
  static constexpr std::chrono::milliseconds defaultTtl{std::chrono::seconds{30}};

  /// How long the store keeps the lock for a holder that has gone silent: 10 ms to 24 h. With a shorter ttl,
  /// the key of a dead holder is free sooner; with a longer one, locks survive longer outages of the store.
  /// Default: 30 s.
  std::optional<std::chrono::milliseconds> ttl{};

  /// How long to wait for a busy key, or for a store that is down: 0 (one attempt) to 24 h, or `forever`.
  /// With `forever`, the wait for a store that is down ends after ManagerOptions::longestOutage. Default:
  /// lock() waits forever, tryLock() does not wait.
  std::optional<std::chrono::milliseconds> waitFor{};

  /// Who renews the lease. Default: automatic.
  std::optional<Renew> renew{};

  /// The longest time for which the lock may be held, at least 1 ms. After that it is lost, even if its
  /// renewals succeed: a bound on holders that hang. Default: `forever`.
  std::optional<std::chrono::milliseconds> maxHold{};

  /// How long before the end of the lease lost() fires and valid() becomes false, so that work can stop in
  /// time. 0 to a little less than half of ttl. Default: a tenth of ttl.
  std::optional<std::chrono::milliseconds> safetyMargin{};

  /// Ends a wait early.
  std::stop_token stop{};

  /// How much of the key to take, on a store that supports shares. Only a call may set it, usually through
  /// LockManager::lockShared() or Semaphore. Default: all of the key.
  std::optional<Share> share{};
};

/// Checks the options as the calls of a manager with these `defaults` do: throws std::invalid_argument that
/// names the first option out of range and what is allowed.
LOCKKEEPER_CORE_EXPORT void checkOptions(const LockOptions& options, const LockOptions& defaults = {});

}  // namespace lockkeeper
