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

/// No bound: lifts a bound on waitFor or maxHold that the manager's defaults set.
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

/// How one lock is taken and kept. An option that a call does not name is taken from ManagerOptions::lock;
/// one that is not named there either has the default given here. Values outside their range are refused with
/// std::invalid_argument before anything is sent.
struct LockOptions {
  static constexpr std::chrono::milliseconds defaultTtl{std::chrono::seconds{30}};

  /// How long the store keeps the lock for a holder that has gone silent: 10 ms to 24 h. Shorter frees the
  /// key of a dead holder sooner; longer rides out longer outages of the store. Default: 30 s.
  std::optional<std::chrono::milliseconds> ttl{};

  /// How long to wait for a busy key, or for a store that is down: 0 (one attempt) to 24 h, or `forever`,
  /// which waits for a store that is down for ManagerOptions::longestOutage only. Default: lock() waits
  /// forever, tryLock() does not wait.
  std::optional<std::chrono::milliseconds> waitFor{};

  /// Who renews the lease. Default: automatic.
  std::optional<Renew> renew{};

  /// The longest that the lock may be held: then it is lost, however well its renewals went. A bound on
  /// holders that hang: at least 1 ms. Default: `forever`.
  std::optional<std::chrono::milliseconds> maxHold{};

  /// How long before the end of the lease lost() fires and valid() turns false, so that work can stop in
  /// time. Must leave at least half of ttl to work in. Default: a tenth of ttl.
  std::optional<std::chrono::milliseconds> safetyMargin{};

  /// Ends a wait early.
  std::stop_token stop{};

  /// How much of the key to take; for a store that counts permits. Only a call names it, and usually by
  /// LockManager::lockShared() or Semaphore. Default: all of the key.
  std::optional<Share> share{};
};

/// Throws std::invalid_argument that names the first option out of range, and what is allowed, as the calls
/// of a manager with these `defaults` do: for callers that want to check before the first call.
LOCKKEEPER_CORE_EXPORT void checkOptions(const LockOptions& options, const LockOptions& defaults = {});

}  // namespace lockkeeper
