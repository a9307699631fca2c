#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "lockkeeper/driver.h"
#include "lockkeeper/error.h"

namespace lockkeeper {

enum class LossReason {
  leaseEnded,          ///< No renewal succeeded in time.
  notOwner,            ///< The store says that somebody else has the key, or nobody.
  ownershipUncertain,  ///< The store cannot tell whose the key is.
  maxHold,             ///< LockOptions::maxHold has passed.
};

const char* toString(LossReason reason) noexcept;

/// Hooks for metrics, logs and traces. Keys are full ones (with the namespace); they, and texts, live only
/// during the call. Calls come from the threads that use locks and from the manager's own, several at a time,
/// outside all internal mutexes. They must be quick, since renewals wait for them; what they throw is
/// dropped.
class Listener {
 public:
  virtual ~Listener() = default;

  virtual void acquired(std::string_view /*key*/, std::chrono::nanoseconds /*waited*/, std::optional<Fence>) {
  }
  /// Not acquired within its waitFor, because it was busy.
  virtual void timedOut(std::string_view /*key*/, std::chrono::nanoseconds /*waited*/) {}
  virtual void renewed(std::string_view /*key*/) {}
  /// A renewal failed; the lease still runs for `remaining`.
  virtual void suspect(std::string_view /*key*/, std::chrono::nanoseconds /*remaining*/) {}
  virtual void lost(std::string_view /*key*/, LossReason) {}
  virtual void released(std::string_view /*key*/, std::chrono::nanoseconds /*held*/) {}
  /// An attempt at the store failed; core may try again.
  virtual void storeFailed(std::string_view /*key*/, ErrorCode, std::string_view /*message*/) {}
  /// A driver has found out something that its operator should know (durability, eviction policy, …).
  virtual void noted(std::string_view /*store*/, std::string_view /*message*/) {}
};

}  // namespace lockkeeper
