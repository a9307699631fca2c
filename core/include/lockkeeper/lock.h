#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

namespace detail {
class Engine;
struct Lease;
}  // namespace detail

/// The state of a lock.
enum class LockState {
  held,      ///< The lease runs and the store answers.
  suspect,   ///< A renewal failed; the lease still runs.
  lost,      ///< The lease has ended, or is within its safety margin, or is somebody else's. Final.
  released,  ///< release() was called, or the lock was inherited through fork(). Final.
};

/// The outcome of a release.
enum class ReleaseResult {
  released,     ///< The store confirmed that the key is free, or the next caller in line has the lock.
  notOwner,     ///< The lock was lost before; its present holder, if any, keeps the key.
  unavailable,  ///< The store was not reached; the manager keeps trying in the background until the lease
                ///< ends.
  unknown,      ///< Sent, but the answer was not seen; the manager keeps trying as for `unavailable`.
  notHeld,      ///< Nothing to do: released before, moved from, or inherited through fork().
};

/// In words, for logs and metrics.
LOCKKEEPER_CORE_EXPORT const char* toString(ReleaseResult result) noexcept;

/// A lock that was taken, or no lock: a Lock that was default-constructed or moved from behaves as after
/// release(). Movable, not copyable. Use it on one thread at a time; only the const functions may be called
/// on any thread, also during renew() or release(), but not while the Lock is moved or destroyed. May outlive
/// the LockManager that made it.
class LOCKKEEPER_CORE_EXPORT Lock {
 public:
  Lock() noexcept = default;
  Lock(Lock&&) noexcept;
  /// Releases what it held before, as the destructor does.
  Lock& operator=(Lock&&) noexcept;

  /// Releases the lock if it is not released yet. The manager reports the outcome to the listener, and keeps
  /// trying in the background as after release(). If the store can do that (Redis), it sends the release and
  /// does not wait for the reply: the next call of this manager for the key finds it free, and other
  /// processes do as soon as the store has received the release. On other stores, or when the Lock is the
  /// last of its manager, it blocks like release(): for the manager's operationTimeout plus one I/O timeout
  /// at most. Never throws.
  ~Lock();

  /// True while work under the lock may go on. Local, no I/O. Once false it stays false.
  [[nodiscard]] bool valid() const noexcept;
  /// valid().
  explicit operator bool() const noexcept { return valid(); }

  /// How long valid() stays true if no renewal succeeds any more; 0 when it is false.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

  /// Where the lock is in its life. Local, no I/O.
  [[nodiscard]] LockState state() const noexcept;

  /// Fires when the lock is lost, at the latest the safety margin before the lease ends. Its callbacks always
  /// run on the manager's threads; four slow callbacks at the same time delay the report of the next loss. In
  /// a forked child, and when memory runs out, the returned token has fired already.
  [[nodiscard]] std::stop_token lost() const noexcept;

  /// The fence of this grant: send it to the resource with each write. Empty when the driver promises none.
  [[nodiscard]] std::optional<Fence> fence() const noexcept;

  /// Like fence(), but never empty, for a resource that compares fences. Throws ConfigError, with the reason,
  /// when this grant has none, and std::logic_error when this is no lock.
  [[nodiscard]] Fence requireFence() const;

  /// The key as the caller gave it, without the namespace.
  [[nodiscard]] std::string_view key() const noexcept;

  /// Extends the lease to a full ttl from now, in one attempt. Blocks like release(). Throws LockLost,
  /// StoreUnavailable (the old lease continues) or OutcomeUnknown (at least the old lease continues).
  void renew();

  /// Frees the key and waits for the outcome: after `released`, everybody finds the key free. One attempt,
  /// which is repeated once if its outcome was not seen. Never throws.
  ReleaseResult release() noexcept;

  /// Like release(), but the key stays taken until `atLeast` has passed since the lock was acquired, at most
  /// until 24 h from now. The call does not wait for that: it renews the lease once more, for the remaining
  /// time, and the lease then ends in the store. `released` means that the store has confirmed this. After
  /// any other result, or when the lock is lost already, the lease stays as it is and ends by itself; so
  /// `atLeast` is kept in any case if it is not longer than the lock's ttl. Blocks for one attempt. Never
  /// throws.
  ReleaseResult releaseHeldFor(std::chrono::milliseconds atLeast) noexcept;

 private:
  friend class detail::Engine;
  friend class LockSet;
  ReleaseResult end(bool awaited, Instant latest = Instant::max()) noexcept;
  Lock(std::shared_ptr<detail::Engine> engine, std::shared_ptr<detail::Lease> lease) noexcept;

  std::shared_ptr<detail::Engine> engine_;
  std::shared_ptr<detail::Lease> lease_;
};

/// Locks on several keys that were taken together by LockManager::lockAll(). When one of them is lost, the
/// set is lost. The others are still renewed until the set is released, so that nobody takes them while the
/// holder stops its work. A set that was default-constructed or moved from behaves as after release().
/// Movable, not copyable; the rules for threads are those of Lock.
class LOCKKEEPER_CORE_EXPORT LockSet {
 public:
  LockSet() noexcept;
  LockSet(LockSet&&) noexcept;
  /// Releases what it held before, as the destructor does.
  LockSet& operator=(LockSet&&) noexcept;

  /// Releases the locks if they are not released yet, as the destructor of Lock does. For all of them
  /// together, it blocks as long as that of one Lock. Never throws.
  ~LockSet();

  /// True while all locks are valid, so that work under them may go on. Local, no I/O. Once false it stays
  /// false.
  [[nodiscard]] bool valid() const noexcept;
  /// valid().
  explicit operator bool() const noexcept { return valid(); }

  /// How long valid() stays true if no renewal succeeds any more; 0 when it is false.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

  /// Released, lost when one is lost, suspect when one is suspect, else held. Local, no I/O.
  [[nodiscard]] LockState state() const noexcept;

  /// Fires when the first of them is lost, as Lock::lost() does.
  [[nodiscard]] std::stop_token lost() const noexcept;

  /// The fence of the lock on `key`, which is written as in the call of lockAll(). Empty when the driver
  /// promises none. Throws std::invalid_argument for a key that is not in the set.
  [[nodiscard]] std::optional<Fence> fence(std::string_view key) const;

  /// The locks, one for each key, in the order in which they were taken. Valid as long as the set, or the set
  /// that it was moved to. Empty in a default-constructed set. lost() of each lock is that of the set.
  [[nodiscard]] std::span<const Lock> locks() const noexcept;

  /// Extends all leases, one after the other, as Lock::renew() does. Throws for the first one that was not
  /// renewed, as Lock::renew() does; those after it are not renewed.
  void renew();

  /// Frees all keys, the last one first, and waits for the outcomes, for one operationTimeout plus one I/O
  /// timeout in total. What the store has not confirmed by then is `unavailable`, and the manager keeps
  /// trying. Returns the worst outcome of all, in this order: notOwner, unknown, unavailable, released,
  /// notHeld. Never throws.
  ReleaseResult release() noexcept;

 private:
  friend class LockManager;
  class State;
  explicit LockSet(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper
