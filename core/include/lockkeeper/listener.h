#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/export.h"
#include "lockkeeper/rate_decision.h"

namespace lockkeeper {

/// Why a lock was lost.
enum class LossReason {
  leaseEnded,          ///< No renewal succeeded in time.
  notOwner,            ///< The store says that somebody else has the key, or nobody.
  ownershipUncertain,  ///< The store cannot tell whose the key is: a legacy client has overwritten or deleted
                       ///< it.
  maxHold,             ///< LockOptions::maxHold has passed.
};

/// In words, for logs and metrics.
LOCKKEEPER_CORE_EXPORT const char* toString(LossReason reason) noexcept;

/// What became of one request to one node of a store that is several nodes.
enum class NodeOutcome {
  agreed,      ///< It did what it was asked.
  refused,     ///< It answered that somebody else has the key, or nobody.
  failed,      ///< It could not be asked, or its answer was an error or none at all.
  unanswered,  ///< It had not answered when the others had decided, or its time was up.
  leftOut,     ///< It was not asked: down, or restarted too recently to count.
};

/// In words, for logs and metrics.
LOCKKEEPER_CORE_EXPORT const char* toString(NodeOutcome outcome) noexcept;

/// Hooks for metrics, logs and traces. Keys are full ones (with the namespace); they, and texts, live only
/// during the call. Calls come from the threads that use locks and from the manager's own, several at a time,
/// outside all internal mutexes. They must be quick, since renewals wait for them; what they throw is
/// dropped.
class LOCKKEEPER_CORE_EXPORT Listener {
 public:
  virtual ~Listener() = default;

  /// A lock was taken, after `waited`.
  virtual void acquired(std::string_view /*key*/, std::chrono::nanoseconds /*waited*/, std::optional<Fence>) {
  }
  /// Not acquired within its waitFor, because it was busy.
  virtual void timedOut(std::string_view /*key*/, std::chrono::nanoseconds /*waited*/) {}
  /// Not acquired for another reason: the caller's stop_token (ErrorCode::cancelled), or what the store
  /// failed with to the end.
  virtual void gaveUp(std::string_view /*key*/, ErrorCode, std::chrono::nanoseconds /*waited*/) {}
  /// The store has confirmed a full ttl.
  virtual void renewed(std::string_view /*key*/) {}
  /// A renewal failed; the lease still runs for `remaining`.
  virtual void suspect(std::string_view /*key*/, std::chrono::nanoseconds /*remaining*/) {}
  /// Told as soon as it is found, which may be when the holder releases; released() is not called then.
  virtual void lost(std::string_view /*key*/, LossReason) {}
  /// The holder has let go, after `held`, also when the store has not confirmed it.
  virtual void released(std::string_view /*key*/, std::chrono::nanoseconds /*held*/) {}
  /// A rate limit was asked, and this is what it alone says: one call for each limit of a take(), and one for
  /// each time that takeOrWait() asks. Not told of peek().
  virtual void decided(std::string_view /*key*/, const Decision&) {}
  /// A rate limit refused a call; `policy` is the one that did. Told after decided().
  virtual void refused(std::string_view /*key*/, std::string_view /*policy*/,
                       std::chrono::microseconds /*retryAfter*/) {}
  /// An attempt at the store failed; core may try again.
  virtual void storeFailed(std::string_view /*key*/, ErrorCode, std::string_view /*message*/) {}
  /// One round of a store that is several nodes, for each node. `latency` counts from the round's start to
  /// the node's answer, or to the round's end.
  virtual void nodeAsked(std::string_view /*node*/, NodeOutcome, std::chrono::nanoseconds /*latency*/) {}
  /// A driver has found out something that its operator should know (durability, eviction policy, …).
  virtual void noted(std::string_view /*store*/, std::string_view /*message*/) {}
};

}  // namespace lockkeeper
