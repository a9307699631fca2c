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

/// Where a lock is in its life.
enum class LockState {
  held,      ///< The lease runs and the store answers.
  suspect,   ///< A renewal failed; the lease still runs.
  lost,      ///< The lease has ended, or is within its safety margin, or is somebody else's. Final.
  released,  ///< release() was called, or the lock was inherited through fork(). Final.
};

/// What a release has found.
enum class ReleaseResult {
  released,     ///< The store confirmed it: the key is free; or the next caller in line has the lock.
  notOwner,     ///< The lock was lost before: the store kept the key for whoever has it now.
  unavailable,  ///< The store was not reached; the manager goes on trying in the background until the lease
                ///< ends.
  unknown,      ///< Sent, but the answer was not seen; the manager goes on trying as for `unavailable`.
  notHeld,      ///< Nothing to do: released before, moved from, or inherited through fork().
};

/// In words, for logs and metrics.
LOCKKEEPER_CORE_EXPORT const char* toString(ReleaseResult result) noexcept;

/// A lock that was taken, or no lock: one that was default-constructed or moved from behaves as after
/// release(). Movable, not copyable; one thread at a time, except the const functions, which any thread may
/// call, also while another one calls renew() or release(), but not while the Lock is moved or destroyed. May
/// outlive the LockManager that made it.
class LOCKKEEPER_CORE_EXPORT Lock {
 public:
  Lock() noexcept = default;
  Lock(Lock&&) noexcept;
  /// Lets go of what it held before, as the destructor does.
  Lock& operator=(Lock&&) noexcept;

  /// Releases, unless released already, and leaves the outcome to the manager: it tells the listener, and
  /// goes on trying in the background as after release(). Where the store can do that (Redis), the release is
  /// handed to the connection and its reply not waited for; the next call of this manager for the key finds
  /// it free, other processes do as soon as the store has it. Elsewhere, or when the Lock is the last of its
  /// manager, blocks like release(): for the manager's operationTimeout plus one I/O timeout at most. Never
  /// throws.
  ~Lock();

  /// True while work under the lock may go on. Local, no I/O. Once false it stays false.
  [[nodiscard]] bool valid() const noexcept;
  /// valid().
  explicit operator bool() const noexcept { return valid(); }

  /// How long valid() stays true if no renewal succeeds any more; 0 when it is false.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

  /// Where the lock is in its life. Local, no I/O.
  [[nodiscard]] LockState state() const noexcept;

  /// Fires when the lock is lost: at the latest, the safety margin before the lease ends. Callbacks run on
  /// the manager's threads, whoever has found the loss; four slow callbacks at the same time delay the next
  /// loss. Without memory for it, and in a forked child, it has fired already.
  [[nodiscard]] std::stop_token lost() const noexcept;

  /// Give it to the resource with each write; empty when the driver promises none.
  [[nodiscard]] std::optional<Fence> fence() const noexcept;

  /// fence(), for a resource that compares fences and so must not be given a made-up one. Throws ConfigError,
  /// with the reason, when this grant has none, and std::logic_error when this is no lock.
  [[nodiscard]] Fence requireFence() const;

  /// The key as the caller gave it, without the namespace.
  [[nodiscard]] std::string_view key() const noexcept;

  /// Extends the lease to a full ttl from now, in one attempt. Blocks like release(). Throws LockLost,
  /// StoreUnavailable (the old lease runs on), OutcomeUnknown (it runs on at least).
  void renew();

  /// Frees the key, in one attempt that is sent again once if its outcome was not seen, and waits for the
  /// outcome: when it says `released`, everybody finds the key free. Never throws.
  ReleaseResult release() noexcept;

  /// Like release(), but the key stays taken until the lock has been held for `atLeast`, counted from when it
  /// was acquired, but 24 h from now at most. Nothing waits for that: the lease is renewed once more, for
  /// just the rest, and ends in the store. `released` then means that the store has confirmed this; after any
  /// other result, or when the lock is lost already, the lease is left as it is and ends by itself. So the
  /// promise holds in any case when `atLeast` is not longer than the lock's ttl. Blocks for one attempt.
  /// Never throws.
  ReleaseResult releaseHeldFor(std::chrono::milliseconds atLeast) noexcept;

 private:
  friend class detail::Engine;
  friend class LockSet;
  ReleaseResult end(bool awaited, Instant latest = Instant::max()) noexcept;
  Lock(std::shared_ptr<detail::Engine> engine, std::shared_ptr<detail::Lease> lease) noexcept;

  std::shared_ptr<detail::Engine> engine_;
  std::shared_ptr<detail::Lease> lease_;
};

/// Locks on several keys that were taken together (LockManager::lockAll()), as one: when one of them is lost,
/// all are lost. Those that are not go on being renewed until the set is released, so that nobody takes them
/// while the holder stops its work. Default-constructed or moved from, it is as after release(). Movable, not
/// copyable; threads as with Lock.
class LOCKKEEPER_CORE_EXPORT LockSet {
 public:
  LockSet() noexcept;
  LockSet(LockSet&&) noexcept;
  /// Lets go of what it held before, as the destructor does.
  LockSet& operator=(LockSet&&) noexcept;

  /// Releases, unless released already, and leaves the outcomes to the manager, as the destructor of Lock
  /// does. Blocks like that of one Lock, for all of them together. Never throws.
  ~LockSet();

  /// True while all are valid: work under them may go on. Local, no I/O. Once false it stays false.
  [[nodiscard]] bool valid() const noexcept;
  /// valid().
  explicit operator bool() const noexcept { return valid(); }

  /// How long valid() stays true if no renewal succeeds any more; 0 when it is false.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

  /// Released, lost when one is lost, suspect when one is suspect, else held. Local, no I/O.
  [[nodiscard]] LockState state() const noexcept;

  /// Fires when the first of them is lost, as Lock::lost() does.
  [[nodiscard]] std::stop_token lost() const noexcept;

  /// That of the lock on `key`, given as the caller of lockAll() gave it; empty when the driver promises
  /// none. Throws std::invalid_argument for a key that is not in the set.
  [[nodiscard]] std::optional<Fence> fence(std::string_view key) const;

  /// The locks, each key once, in the order in which they were taken; as long as the set lives, or what it
  /// was moved to. None in a default-constructed set. lost() of each of them is that of the set.
  [[nodiscard]] std::span<const Lock> locks() const noexcept;

  /// Extends all leases, one after the other, as Lock::renew() does. Throws what that throws, for the first
  /// one that was not renewed; those after it are as they were.
  void renew();

  /// Frees all keys, the last one first, and waits for the outcomes, for one operationTimeout plus one I/O
  /// timeout altogether: what the store has not confirmed by then is `unavailable`, and the manager goes on
  /// with it. Returns the worst that was found: notOwner, unknown, unavailable, released, notHeld. Never
  /// throws.
  ReleaseResult release() noexcept;

 private:
  friend class LockManager;
  class State;
  explicit LockSet(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper
