#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/error.h"
#include "lockkeeper/export.h"
#include "lockkeeper/lock.h"
#include "lockkeeper/lock_options.h"
#include "lockkeeper/owner/owner_token.h"

/// Locks and rate limits that many processes share, in whatever store: core.
namespace lockkeeper {

/// How a manager works, for all of its locks. Values outside their range are refused with
/// std::invalid_argument.
struct ManagerOptions {
  /// A prefix of each key, separated by a ':', so that applications can share a store. [A-Za-z0-9_.-]{0,64};
  /// "" for none.
  std::string keyNamespace{};

  /// The label under which others see who holds a lock; "" for "host:pid". At most 64 printable characters
  /// without '@', the last one not '~', which marks members of a migration. Not secret.
  std::string owner{};

  /// How long one attempt at the store may take: 1 ms to 1 h.
  std::chrono::milliseconds operationTimeout{std::chrono::seconds{2}};

  /// How long a call that has no bound on its wait, such as lock() without a waitFor, waits for a store that
  /// cannot be reached: 1 ms to 24 h, or `forever`. The call then throws StoreUnavailable, or OutcomeUnknown
  /// if a claim may have been granted. The time starts again whenever the store answers. It does not limit
  /// the wait for a busy key.
  std::chrono::milliseconds longestOutage{std::chrono::minutes{1}};

  /// The waits between attempts at a busy key. The n-th one is random in [d/2, d], where d = initial * 2^n,
  /// but at most cap.
  std::chrono::milliseconds backoffInitial{5};
  std::chrono::milliseconds backoffCap{250};

  /// The defaults of options that a call does not name.
  LockOptions lock{};

  Environment environment{};
};

/// Thrown by LockManager::withLock() when the lock was lost although the function returned a value.
template <class Result>
class LOCKKEEPER_CORE_EXPORT LockLostWith : public LockLost {
 public:
  /// As LockLost().
  LockLostWith(const std::string& message, Result result)
      : LockLost(message), result_(std::make_shared<Result>(std::move(result))) {}

  /// What the function returned. Copies of the exception share it.
  Result& result() const noexcept { return *result_; }

 private:
  std::shared_ptr<Result> result_;
};

/// Checks the options as the constructor of LockManager does: throws std::invalid_argument that names the
/// first option out of range and what is allowed.
LOCKKEEPER_CORE_EXPORT void checkOptions(const ManagerOptions& options);

/// Takes locks from one store. Thread-safe; make one for each store and share it. From the first lock on, it
/// has threads that renew the leases of all its locks and threads that report losses: usually two of each, at
/// most four of each.
///
/// Callers of lock() and tryLock() queue for a key in FIFO order inside the process, and only the first of
/// them goes to the store. Locks are not re-entrant: a second lock() of a key that the caller holds waits
/// like any other call, and without a waitFor it waits for ever. Pass the Lock on instead.
///
/// Its Locks may outlive it: they are renewed until they are released. To end a manager in which other
/// threads may be waiting, call stop(), join these threads, then destroy it. Moving or destroying it while
/// another thread is in one of its functions is a data race, as with any object. A manager that was moved
/// from throws std::logic_error.
///
/// After fork() the child's copies hold nothing and touch no socket: calls throw ForkedError, so make a new
/// one.
class LOCKKEEPER_CORE_EXPORT LockManager {
 public:
  /// Throws std::invalid_argument for options out of range.
  explicit LockManager(std::shared_ptr<LockDriver> driver, ManagerOptions options = {});
  LockManager(LockManager&&) noexcept;
  LockManager& operator=(LockManager&&) noexcept;

  /// Another handle of the same manager. It stays usable when this object is moved or destroyed. Both handles
  /// use the same store, threads and queue of callers, and stop() of either stops both. The manager ends with
  /// its last handle. Mutex, SharedMutex, Semaphore, ReentrantLock and UpgradeableLock keep a handle.
  [[nodiscard]] LockManager share() const;

  /// Blocks for one operation at most. Locks that are held stay held.
  ~LockManager();

  /// Returns the lock, or nothing when the key stayed busy for waitFor or when options.stop or stop() was
  /// triggered. waitFor is 0 unless the call or the manager's defaults set it. Throws std::invalid_argument
  /// for a bad key or options, LockDriver's errors when the store still failed at the end of the wait, and
  /// std::system_error when no thread can be started to renew the lock, which is then released. Blocks for
  /// waitFor plus one operationTimeout plus one I/O timeout at most.
  ///
  /// A key is busy when the store says so, or when this manager holds it. If a call's time is up while it is
  /// queued behind another call's unanswered attempt, it waits for that attempt as for its own, and throws
  /// StoreUnavailable when no answer comes.
  [[nodiscard]] std::optional<Lock> tryLock(std::string_view key, const LockOptions& options = {});

  /// Like tryLock(), but waits for ever unless a waitFor is set, and throws LockTimeout (busy) or Cancelled
  /// (stopped) instead of returning nothing. It also waits for a store that is down: for waitFor, or without
  /// one for ManagerOptions::longestOutage plus one operationTimeout plus one I/O timeout at most.
  [[nodiscard]] Lock lock(std::string_view key, const LockOptions& options = {});

  /// Takes a share of the key, for readers: any number of readers can have the key at the same time, but none
  /// while somebody holds the whole key by lock(). Where the store has a queue, readers and writers are
  /// served in the order in which they came. A reader's fence is that of the last writer, or a later one that
  /// is below the next writer's. Otherwise as tryLock(); throws ConfigError where the store cannot do it.
  [[nodiscard]] std::optional<Lock> tryLockShared(std::string_view key, const LockOptions& options = {});
  /// Likewise, as lock().
  [[nodiscard]] Lock lockShared(std::string_view key, const LockOptions& options = {});

  /// Throws ConfigError, with the reason, if the store does not support lockShared(), SharedMutex and
  /// Semaphore. No I/O.
  void requireShares() const;
  /// The holders of shares of the key; none while it is held as a whole. One attempt. Throws as
  /// requireShares().
  [[nodiscard]] std::vector<Holder> shareHolders(std::string_view key);
  /// Permits::resize() for the key. One attempt. Throws as requireShares().
  bool resizeShares(std::string_view key, std::uint32_t limit);

  /// Locks all of `keys` (1 to 1,000) or none. A key that is named twice is locked once. The keys are taken
  /// in the order of their bytes, whatever their order here, so callers of lockAll() never deadlock with each
  /// other: a caller that waits for a key holds none of the keys after it. A program that holds other locks
  /// at the same time must keep an order of its own. The options apply to each lock, but waitFor is for all
  /// of them together, and maxHold counts from when the last one was taken. While the call waits, the manager
  /// renews the locks that it has already, also with Renew::manual. When the call gives up, it releases them.
  ///
  /// Otherwise as tryLock(): nothing when a key stayed busy or the call was stopped. Blocks for waitFor plus
  /// two operationTimeouts, or one operationTimeout for each key where the driver is not Batchable, plus as
  /// many I/O timeouts.
  [[nodiscard]] std::optional<LockSet> tryLockAll(std::vector<std::string_view> keys,
                                                  const LockOptions& options = {});
  /// The same for keys that are strings.
  [[nodiscard]] std::optional<LockSet> tryLockAll(std::span<const std::string> keys,
                                                  const LockOptions& options = {}) {
    return tryLockAll(std::vector<std::string_view>(keys.begin(), keys.end()), options);
  }

  /// Like tryLockAll(), but waits for ever unless a waitFor is set, and throws LockTimeout or Cancelled
  /// instead of returning nothing.
  [[nodiscard]] LockSet lockAll(std::vector<std::string_view> keys, const LockOptions& options = {});
  /// The same for keys that are strings.
  [[nodiscard]] LockSet lockAll(std::span<const std::string> keys, const LockOptions& options = {}) {
    return lockAll(std::vector<std::string_view>(keys.begin(), keys.end()), options);
  }

  /// Takes the lock as lock() does, runs `fn(Lock&)` or `fn()` under it, and releases it. If the lock was
  /// lost meanwhile, throws LockLost after fn has returned: the lock did not protect fn to its end. If fn
  /// returned a value, the exception is a LockLostWith, which contains it.
  template <class Fn>
  auto withLock(std::string_view key, const LockOptions& options, Fn&& fn) {
    Lock held = lock(key, options);
    auto call = [&]() -> decltype(auto) {
      if constexpr (std::is_invocable_v<Fn, Lock&>) {
        return std::invoke(std::forward<Fn>(fn), held);
      } else {
        return std::invoke(std::forward<Fn>(fn));
      }
    };
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      releaseHeld(held);
    } else {
      auto result = call();
      try {
        releaseHeld(held);
      } catch (const LockLost& loss) {
        throw LockLostWith<decltype(result)>(loss.what(), std::move(result));
      }
      return result;
    }
  }

  /// With the manager's own options.
  template <class Fn>
  auto withLock(std::string_view key, Fn&& fn) {
    return withLock(key, LockOptions{}, std::forward<Fn>(fn));
  }

  /// Asks the store at once, which StoreRegistry::open() does not do: is it reachable, are the login and its
  /// rights correct, do the tables exist, and does the store accept writes? Call it when a program starts. It
  /// locks the key "lockkeeper.ping", in the namespace, and releases it. `within`, 0 (one attempt) to 24 h,
  /// is how long it waits for a store that cannot be reached. Blocks and throws as lock() with that waitFor,
  /// but a busy key is no error: another process is asking the same.
  void ping(std::chrono::milliseconds within);

  /// Ends the waits of all present and later calls, which do not ask the store any more: tryLock() returns
  /// nothing, and lock() throws Cancelled. Locks that are held stay held, and are renewed until they are
  /// released. Does not wait for the calls that it ends. Cannot be undone.
  void stop() noexcept;
  /// Whether stop() was called.
  [[nodiscard]] bool stopped() const noexcept;

  /// ManagerOptions::lock, with its ttl and renew filled in.
  [[nodiscard]] const LockOptions& defaults() const;

  /// ManagerOptions::environment.
  [[nodiscard]] const Environment& environment() const;

  /// The present holder of the key; empty when it is free. One attempt that only reads.
  [[nodiscard]] std::optional<Holder> holder(std::string_view key);

  /// Whether anybody holds the key now. One attempt that only reads. The answer may be outdated when it
  /// arrives: do not use it in place of a lock.
  [[nodiscard]] bool isLocked(std::string_view key) { return holder(key).has_value(); }

  /// A token for `held` that other processes of the same owner pass to withOwner(), which lets them in. Its
  /// `ended` never fires; whoever passes the token on sets one that does. Empty when `held` is not a lock of
  /// this manager or is lost, and when the store cannot tell its grant from others, such as two shares of
  /// holders with the same ManagerOptions::owner. One attempt that only reads; throws as holder().
  [[nodiscard]] std::optional<OwnerToken> ownerToken(const Lock& held);

  /// The number of locks of this manager that are LockState::suspect now: their last renewal failed, or the
  /// store may have forgotten them. Does not ask the store.
  [[nodiscard]] std::size_t suspectLocks() const;

  /// LockDriver::promises().
  [[nodiscard]] Promises promises() const;

 private:
  friend class UpgradeableLock;
  LockManager() noexcept;
  static void releaseHeld(Lock& held);
  /// As tryLock(), for who has another share of the key: AcquireRequest::ahead.
  std::optional<Lock> tryLockAhead(std::string_view key, const LockOptions& options);
  std::shared_ptr<detail::Engine> engine() const;

  std::shared_ptr<detail::Engine> engine_;
};

}  // namespace lockkeeper
