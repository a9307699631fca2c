#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/export.h"
#include "lockkeeper/rate_policy.h"

namespace lockkeeper {

/// Why a lock was lost.
enum class LossReason {
  leaseEnded,          ///< No renewal succeeded in time.
  notOwner,            ///< The store says that somebody else has the key, or that nobody has it.
  ownershipUncertain,  ///< The store cannot tell whose the key is: a legacy client has overwritten or deleted
                       ///< it.
  maxHold,             ///< LockOptions::maxHold has passed.
};

/// In words, for logs and metrics.
LOCKKEEPER_CORE_EXPORT const char* toString(LossReason reason) noexcept;

/// The outcome of one request to one node of a store with several nodes.
enum class NodeOutcome {
  agreed,      ///< It did what it was asked.
  refused,     ///< It answered that somebody else has the key, or that nobody has it.
  failed,      ///< It could not be asked, or its answer was an error or none at all.
  unanswered,  ///< It had not answered when the others had decided, or its time was up.
  leftOut,     ///< It was not asked: down, or restarted too recently to count.
};

/// In words, for logs and metrics.
LOCKKEEPER_CORE_EXPORT const char* toString(NodeOutcome outcome) noexcept;

/// The outcome of one run of an ExclusiveTask.
enum class TaskOutcome {
  done,         ///< It ran to its end under the lock.
  lost,         ///< It ran, but the lock was lost before its end: `atMost` has passed, or the store was away.
  threw,        ///< It ran and threw; run() passes the exception on.
  skipped,      ///< Not run: another instance is running it, or ran it within `atLeast`.
  stopped,      ///< Not run: the caller's stop_token or LockManager::stop() was triggered before.
  storeFailed,  ///< Not run: the store did not answer, or refused.
  missed,       ///< Not run: a tick of a ScheduledTask came when this process could not run it; `text` says
                ///< why.
};

/// In words, for logs and metrics.
LOCKKEEPER_CORE_EXPORT const char* toString(TaskOutcome outcome) noexcept;

/// What an Event reports.
enum class EventKind {
  // A call for a lock has ended. It began when the call did; `attempts` were made at the store.
  acquired,  ///< It got the lock, with `fence`.
  timedOut,  ///< It did not: the key stayed busy for waitFor.
  gaveUp,  ///< It did not for another reason: `error` is cancelled, or what the store failed with to the end.

  // A lock that is held.
  renewed,        ///< The store confirmed a full lease. Began when the renewal was sent.
  renewalFailed,  ///< For the reason in `error` and `text`; the lease still runs for `remaining`.
  lost,           ///< For the reason in `loss`; no `released` follows. Began when the lock was acquired.
  released,  ///< The holder has released it; `error` and `text` say why the store has not confirmed that, if
             ///< so. Began when the lock was acquired. Told when the store has answered, also where the
             ///< holder did not wait for that (~Lock); it ended when the holder let go, then.

  // Rate limits.
  decided,  ///< One limit was asked; `decision` is what it alone says. There is one event for each limit of a
            ///< take() and for each time that takeOrWait() asks, and none for peek().

  // Stores.
  attemptFailed,  ///< An attempt at the store failed with `error`; core may try again. Of the attempts of a
                  ///< manager that fail with the same error, the first one is told, and then at most one a
                  ///< second: `leftOut` is how many were not.
  nodeAsked,      ///< A node of a store with several nodes took part in a round: `node` is its outcome.
                  ///< Began with the round, ended with the node's answer or the round.
  noted,  ///< Something that operators should know: a driver has found it out, such as how durable the store
          ///< is; or more than 65,536 releases wait in the background, and the rest is not sent.

  // What is built on locks; `key` is the name of the election or task, or the key of the value. Their locks
  // have events as any other lock has: a term that ends without resigning ends with `lost`.
  callbackFailed,  ///< A callback of a LeaderElection threw; `text` says what.
  callbackLate,  ///< One still ran when its time was up: another leader may have been elected. After a loss,
                 ///< its time is the safety margin from when the loss was found.
  taskEnded,     ///< A run of an ExclusiveTask: `task` is its outcome, `text` what it threw, or why it was
                 ///< missed.
  cacheHit,      ///< A CachedLoader has served a fresh value,
  cacheStale,    ///< a stale one,
  cacheLoaded,   ///< or one that the loader has returned.
  loadFailed,    ///< The loader threw; `text` says what.
  notStored,    ///< A loaded value was not stored: its lock was lost before, it was old by then, or the store
                ///< refused it.
  termBegan,    ///< This process is the leader from now on, with `fence`. Told before `elected` is called.
  termEnded,    ///< It is not any more. Began when its term did.
  taskPlanned,  ///< A ScheduledTask waits for its next tick, which comes in `remaining`.
  scheduleEnded,  ///< A ScheduledTask waits for no tick any more: it was destroyed, or its manager stopped.

  // Migrations and requests.
  phaseChanged,    ///< The migration `key` goes by the rules `text`, or is on the way to others: then `text`
                   ///< is the rule that puts all keys into both stores. Also told when it is joined.
  requestRefused,  ///< A filter has refused a request of the route `key` with the HTTP status `status`, or,
                   ///< if `dryRun` is set, would have.
};

/// The name of the kind, for logs and traces.
LOCKKEEPER_CORE_EXPORT const char* toString(EventKind kind) noexcept;

/// Something that has happened. Fields that a kind does not name are empty. Views and pointers are valid only
/// during the call of the listener. A tracing span needs `began`, `ended`, `store`, `key`, `kind`, `error`
/// and `attempts`.
struct Event {
  EventKind kind;
  std::string_view key{};    ///< With the namespace; of a limit, with the limit's name.
  std::string_view store{};  ///< Its address or the node's, without secrets; empty where a driver gives none.
  Instant began{};           ///< On Environment::clock.
  Instant ended{};           ///< On the same clock; when it happened.
  int attempts = 0;          ///< At the store, of a call for a lock, a renewal and a release.
  std::optional<ErrorCode> error{};
  std::string_view text{};  ///< The error's message, or what was noted. No secret is in it.
  std::size_t leftOut = 0;  ///< Of `attemptFailed` only: how many before it were not told.
  std::optional<Fence> fence{};
  std::optional<Share> share{};          ///< Of a call for a lock, and of a lock: empty for all of the key.
  std::chrono::nanoseconds remaining{};  ///< Until the lease ends, or until the tick.
  LossReason loss{};                     ///< Of `lost` only.
  NodeOutcome node{};                    ///< Of `nodeAsked` only.
  TaskOutcome task{};                    ///< Of `taskEnded` only.
  int status = 0;                        ///< Of `requestRefused` only.
  bool dryRun = false;                   ///< Of `requestRefused` only.
  const Decision* decision = nullptr;    ///< Of `decided` only.
  /// Of `decided` only, where a takeOrWait() or reserve() is allowed: from that call to when the caller may
  /// go.
  std::optional<std::chrono::nanoseconds> wait{};
  std::string_view trace{};  ///< Of the TraceScope in which it, or the lock that it is about, came to be.

  /// How long it took.
  std::chrono::nanoseconds duration() const noexcept { return ended - began; }
};

/// Receives events, for metrics, logs and traces.
class LOCKKEEPER_CORE_EXPORT Listener {
 public:
  virtual ~Listener() = default;

  /// Called by the threads that use locks and by those that renew them, by several at the same time, outside
  /// all internal mutexes. It must be quick, because renewals wait for it. What it throws is ignored. No call
  /// begins after a manager and all its Locks are gone.
  virtual void on(const Event& event) = 0;
};

/// Several listeners as one: each receives every event, in the given order, even if one before it throws.
/// Thread-safe if all of them are.
class LOCKKEEPER_CORE_EXPORT ListenerGroup final : public Listener {
 public:
  /// Throws std::invalid_argument for a null listener.
  explicit ListenerGroup(std::vector<std::shared_ptr<Listener>> members);

  /// Passes the event on to all.
  void on(const Event& event) override;

 private:
  const std::vector<std::shared_ptr<Listener>> members_;
};

}  // namespace lockkeeper
