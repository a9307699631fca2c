#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/error.h"
#include "lockkeeper/export.h"
#include "lockkeeper/lock.h"
#include "lockkeeper/lock_options.h"

/// Locks and rate limits that many processes share, in whatever store: core.
namespace lockkeeper {

/// How a manager works, for all of its locks.
struct ManagerOptions {
  /// Put before each key with a ':', so that applications share a store. [A-Za-z0-9_.-]{0,64}; "" for none.
  std::string keyNamespace{};

  /// The label under which others see who holds a lock; "" for "host:pid". At most 64 printable characters
  /// without '@'. Not secret.
  std::string owner{};

  /// How long one attempt at the store may take: 1 ms to 1 h.
  std::chrono::milliseconds operationTimeout{std::chrono::seconds{2}};

  /// Waits between attempts at a busy key: the n-th one is random in [d/2, d], d = initial * 2^n, at most
  /// cap.
  std::chrono::milliseconds backoffInitial{5};
  std::chrono::milliseconds backoffCap{250};

  /// How locks are taken by the calls that do not say.
  LockOptions lock{};

  Environment environment{};
};

/// Takes locks from one store. Thread-safe; make one for each store and share it. It has up to four
/// threads that renew the leases of all its locks and up to four that tell losses; usually two of each, from
/// the first lock on.
///
/// Callers of one manager queue for a key in FIFO order inside the process, and only the first of them goes
/// to the store. Locks are not re-entrant: a second lock() of a held key waits like anyone else; pass the
/// Lock on instead.
///
/// After fork() the child's copies hold nothing and touch no socket: calls throw ForkedError, so make a new
/// one.
class LOCKKEEPER_CORE_EXPORT LockManager {
 public:
  /// Throws ConfigError or std::invalid_argument for options out of range.
  explicit LockManager(std::shared_ptr<LockDriver> driver, ManagerOptions options = {});
  LockManager(LockManager&&) noexcept;
  LockManager& operator=(LockManager&&) noexcept;
  ~LockManager();

  /// The lock, or nothing when the key stayed busy for options.waitFor or options.stop was triggered. Throws
  /// std::invalid_argument for a bad key or options, and LockDriver's errors when the store failed to the
  /// end. Blocks for waitFor plus one operationTimeout plus one I/O timeout at most.
  [[nodiscard]] std::optional<Lock> tryLock(std::string_view key, const LockOptions& options);
  /// With defaults().
  [[nodiscard]] std::optional<Lock> tryLock(std::string_view key) { return tryLock(key, defaults()); }

  /// Like tryLock, but throws LockTimeout (busy) or Cancelled (stopped) instead of returning nothing.
  [[nodiscard]] Lock lock(std::string_view key, const LockOptions& options);
  /// With defaults().
  [[nodiscard]] Lock lock(std::string_view key) { return lock(key, defaults()); }

  /// Runs `fn(Lock&)` or `fn()` under the lock and releases it. Throws LockLost, after fn has returned, when
  /// the lock was lost meanwhile: what fn did was then not protected to its end.
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
      releaseHeld(held);
      return result;
    }
  }

  /// With defaults().
  template <class Fn>
  auto withLock(std::string_view key, Fn&& fn) {
    return withLock(key, defaults(), std::forward<Fn>(fn));
  }

  /// ManagerOptions::lock, to change some of it for one call.
  const LockOptions& defaults() const;

  /// Who holds the key now; empty when it is free. One attempt.
  std::optional<Holder> holder(std::string_view key);

  /// Whether anybody holds the key now, whoever it is. One attempt that only reads: by the time the answer is
  /// here it may be wrong, so decide nothing by it that a lock should decide.
  bool isLocked(std::string_view key) { return holder(key).has_value(); }

  /// LockDriver::promises().
  Promises promises() const;

 private:
  static void releaseHeld(Lock& held);

  std::shared_ptr<detail::Engine> engine_;
};

}  // namespace lockkeeper
