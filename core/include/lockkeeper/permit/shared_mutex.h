#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "lockkeeper/export.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mutex.h"

namespace lockkeeper {

/// A key as std::shared_timed_mutex: many readers, or one writer. std::shared_lock and std::unique_lock work.
/// First come, first served, in the store's queue where it has one, so that neither starves. Each reader has
/// a lease of its own: one that dies counts until its ttl has passed, and no longer. A reader that wants to
/// write unlocks first, since two that upgrade would wait for each other, or has an UpgradeableLock. Share
/// one among threads; ownership can be lost, as with Mutex.
///
/// Its options' waitFor, stop and share are not used. Functions throw what those of Mutex throw. After fork()
/// the child holds nothing.
class LOCKKEEPER_CORE_EXPORT SharedMutex {
 public:
  /// Goes on when `manager` is moved or destroyed. Sends nothing. Throws ConfigError, with the reason, when
  /// the store cannot do it.
  SharedMutex(LockManager& manager, std::string key, LockOptions options = {});

  /// The writer's, as in Mutex. Also excludes, and is excluded by, LockManager::lock() of the key.
  /// @{
  void lock() { whole_.lock(); }
  [[nodiscard]] bool try_lock() { return whole_.try_lock(); }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& length) {
    return whole_.try_lock_for(length);
  }
  template <class OtherClock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<OtherClock, Duration>& until) {
    return whole_.try_lock_until(until);
  }
  void unlock() noexcept { whole_.unlock(); }
  /// @}

  /// The readers': as LockManager::lockShared(). Each thread ends its own share: unlock_shared() does nothing
  /// on one that has none.
  /// @{
  void lock_shared() { shared_.lock(); }
  [[nodiscard]] bool try_lock_shared() { return shared_.try_lock(); }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& length) {
    return shared_.try_lock_for(length);
  }
  template <class OtherClock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<OtherClock, Duration>& until) {
    return shared_.try_lock_until(until);
  }
  void unlock_shared() noexcept { shared_.unlock(Mutex::Whose::own); }
  /// @}

  /// The calling thread's loss signal, as a writer or a reader; a token that never fires when it is neither.
  [[nodiscard]] std::stop_token lost() const;

 private:
  Mutex whole_;
  Mutex shared_;
};

}  // namespace lockkeeper
