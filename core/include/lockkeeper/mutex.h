#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/export.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper {

/// A key as a standard mutex: meets TimedLockable, so that std::unique_lock and std::scoped_lock work. Share
/// one among threads like a std::mutex. Unlike a std::mutex, it belongs to no thread: any thread may unlock
/// what another one has locked. And ownership can be lost: check lost() in long sections.
///
/// After a loss, the former holder and the next one may both be between lock() and unlock(). Each call of
/// unlock() ends one lock: the one that the calling thread took last or, if it has none, the oldest one that
/// is not unlocked yet.
///
/// The options' waitFor and stop are not used: lock() waits like LockManager::lock() without a waitFor, and
/// the other functions as long as they say. lock() throws as LockManager::lock() does (Cancelled when the
/// manager was stopped), and the try functions throw as tryLock() does. After fork() the child holds nothing.
class LOCKKEEPER_CORE_EXPORT Mutex {
 public:
  /// `manager` may be moved or destroyed afterwards. Sends nothing.
  Mutex(LockManager& manager, std::string key, LockOptions options = {});
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  /// Blocks until the lock is held.
  void lock();
  /// One attempt; false when the key is busy.
  [[nodiscard]] bool try_lock();

  /// Blocks for `length`, at most 24 h, plus one attempt; false when the key stayed busy.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& length) {
    const Seconds seconds = length;
    if (seconds <= seconds.zero()) return try_lock();
    if (seconds >= longestWait) return tryLockFor(longestWait);
    return tryLockFor(std::chrono::ceil<std::chrono::milliseconds>(length));
  }

  /// Like try_lock_for(), until a time on any clock.
  template <class OtherClock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<OtherClock, Duration>& until) {
    const Seconds now = OtherClock::now().time_since_epoch();
    return try_lock_for(Seconds(until.time_since_epoch()) - now);
  }

  /// Releases the lock as ~Lock does: without waiting for the outcome if the store can do that. Does nothing
  /// when all are unlocked. Never throws, not even when the lock was lost meanwhile.
  void unlock() noexcept { unlock(Whose::anybodys); }

  /// The loss signal of the lock that unlock() would end; a token that never fires when all are unlocked.
  [[nodiscard]] std::stop_token lost() const { return lost(Whose::anybodys); }

 private:
  friend class SharedMutex;  // whose readers have shares side by side: each thread ends its own

  /// The lock that the calling thread took last, or else the first of all.
  enum class Whose { own, anybodys };
  void unlock(Whose whose) noexcept;
  std::stop_token lost(Whose whose) const;

  using Seconds = std::chrono::duration<double>;  // which no length overflows
  static constexpr std::chrono::hours longestWait{24};

  bool tryLockFor(std::chrono::milliseconds length);
  LockOptions waitingFor(std::chrono::milliseconds length) const;
  void keep(Lock held);

  struct Held {
    std::thread::id by;
    Lock lock;
  };
  std::list<Held>::const_iterator toUnlock(Whose whose) const;

  LockManager manager_;
  const std::string key_;
  const LockOptions options_;
  const ForkGuard forkGuard_;
  mutable std::mutex mutex_;
  std::list<Held> held_;  // in the order in which they were taken; all but the last one are lost
};

/// A lock that its owner may lock again. The owner is this object, not a thread: all code that has a
/// reference to it, on any thread, works for the same owner, so it is let in at once while the lock is held.
/// Make one for each job. This object counts the levels; in the store there is one lease, taken with the
/// first level and released with the last one. A loss ends all levels.
///
/// Meets Lockable, so that std::unique_lock and std::lock_guard work. Thread-safe. In a forked child it holds
/// nothing.
class LOCKKEEPER_CORE_EXPORT ReentrantLock {
 public:
  /// Throws std::invalid_argument for a key that no driver takes, and for options out of range. `manager` may
  /// be moved or destroyed afterwards.
  ReentrantLock(LockManager& manager, std::string key, LockOptions options = {});
  ReentrantLock(const ReentrantLock&) = delete;
  ReentrantLock& operator=(const ReentrantLock&) = delete;
  ~ReentrantLock();

  /// Adds a level. The first one takes the lock, and blocks and throws as LockManager::lock(). Callers that
  /// come meanwhile wait for that within their own waitFor; if it fails, one of them tries next. When the
  /// store could not be reached for ManagerOptions::longestOutage, all of them fail. Throws LockLost while a
  /// lost lock has levels that are not unlocked yet.
  void lock();

  /// Like lock(), but waits and throws as LockManager::tryLock(), and returns false where that returns
  /// nothing.
  [[nodiscard]] bool try_lock();

  /// Removes a level, whichever thread added it. With the last one the lock ends as a Lock does. Throws
  /// std::logic_error when there is no level.
  void unlock();

  /// The number of levels; 0 when the lock is not held.
  [[nodiscard]] std::size_t levels() const;

  /// As Lock::valid(), for all levels; false without a level.
  [[nodiscard]] bool valid() const;
  /// As Lock::lost(), for all levels; a token that never fires without a level.
  [[nodiscard]] std::stop_token lost() const;
  /// As Lock::fence(); empty without a level.
  [[nodiscard]] std::optional<Fence> fence() const;

 private:
  struct State;

  template <class Take>
  bool enter(std::chrono::milliseconds unnamedWait, Take&& take);

  LockManager manager_;
  const std::string key_;
  const LockOptions options_;
  const ForkGuard forkGuard_;
  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper
