#pragma once

#include "lockkeeper/driver/driver.h"

namespace lockkeeper {

/// Hears from a driver that claims no longer hold their keys, or perhaps not. Thread-safe. Does not block and
/// calls no driver, so that a driver may call it under its own mutexes.
class LOCKKEEPER_CORE_EXPORT LossListener {
 public:
  virtual ~LossListener() = default;

  /// The claims with these tokens are gone; unknown tokens are ignored.
  virtual void claimsLost(std::span<const Token> tokens) noexcept = 0;

  /// The store may have forgotten claims that it has granted: all have to be renewed now.
  virtual void claimsInDoubt() noexcept {}
};

/// The driver learns of claims that are gone (a session ended, an operator took the key away), so that the
/// holder hears of it before the next renewal.
class LOCKKEEPER_CORE_EXPORT LossReporting {
 public:
  virtual ~LossReporting() = default;

  /// From now on, as long as it lives, `listener` hears of every loss that the driver learns of. There may be
  /// several (see LossListeners). Thread-safe.
  virtual void addLossListener(std::weak_ptr<LossListener> listener) = 0;
};

/// The driver notices when another server, which may lack some claims, takes the place of the store's, or
/// when that has restarted without them. Core then renews all leases at once.
class LOCKKEEPER_CORE_EXPORT DoubtReporting {
 public:
  virtual ~DoubtReporting() = default;

  /// As addLossListener(), for claimsInDoubt(), which comes before any answer of the other server.
  virtual void addDoubtListener(std::weak_ptr<LossListener> listener) = 0;

  /// How often core calls checkServer() while it keeps leases; empty: calls notice it soon enough. No I/O.
  virtual std::optional<std::chrono::milliseconds> checkEvery() const = 0;

  /// One bounded attempt to find out whether another server has taken over. When it fails, the next one is
  /// soon enough. Thread-safe.
  virtual void checkServer(Instant deadline) noexcept = 0;
};

}  // namespace lockkeeper
