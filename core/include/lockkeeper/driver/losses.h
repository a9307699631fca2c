#pragma once

#include "lockkeeper/driver/driver.h"

namespace lockkeeper {

/// Is told by a driver that claims do not hold their keys any more, or perhaps do not. Thread-safe. It must
/// not block and must not call a driver, so that a driver may call it under its own mutexes.
class LOCKKEEPER_CORE_EXPORT LossListener {
 public:
  virtual ~LossListener() = default;

  /// The claims with these tokens are gone; unknown tokens are ignored.
  virtual void claimsLost(std::span<const Token> tokens) noexcept = 0;

  /// The store may have forgotten claims that it has granted: all have to be renewed now.
  virtual void claimsInDoubt() noexcept {}
};

/// The driver learns of claims that are gone (a session ended, an operator took the key away), so that the
/// holder is told before the next renewal.
class LOCKKEEPER_CORE_EXPORT LossReporting {
 public:
  virtual ~LossReporting() = default;

  /// From now on, as long as it lives, `listener` is told of every loss that the driver learns of. There may
  /// be several listeners (see LossListeners). Thread-safe.
  virtual void addLossListener(std::weak_ptr<LossListener> listener) = 0;
};

/// The driver notices when the store's server is replaced by another one, which may lack some claims, or has
/// restarted without them. Core then renews all leases at once.
class LOCKKEEPER_CORE_EXPORT DoubtReporting {
 public:
  virtual ~DoubtReporting() = default;

  /// As addLossListener(), for claimsInDoubt(), which comes before any answer of the other server.
  virtual void addDoubtListener(std::weak_ptr<LossListener> listener) = 0;

  /// How often core calls checkServer() while it keeps leases; empty: calls notice it soon enough. No I/O.
  virtual std::optional<std::chrono::milliseconds> checkEvery() const = 0;

  /// One bounded attempt to find out whether another server has taken over. Core calls again. Thread-safe.
  virtual void checkServer(Instant deadline) noexcept = 0;
};

}  // namespace lockkeeper
