#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "lockkeeper/export.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mutex.h"

namespace lockkeeper {

/// A key as a std::shared_timed_mutex: many readers, or one writer. std::shared_lock and std::unique_lock
/// work. Where the store has a queue, all are served in the order in which they came, so neither readers nor
/// writers starve. Each reader has a lease of its own, so a reader that dies counts until its ttl has passed.
/// A reader that wants to write must unlock first, because two readers that upgrade would wait for each
/// other; or use an UpgradeableLock. Share one SharedMutex among threads. Ownership can be lost, as with
/// Mutex.
///
/// The options' waitFor, stop and share are not used. The functions throw as those of Mutex do. After fork()
/// the child holds nothing.
class LOCKKEEPER_CORE_EXPORT SharedMutex {
 public:
  /// `manager` may be moved or destroyed afterwards. Sends nothing. Throws ConfigError, with the reason, if
  /// the store does not support it.
  SharedMutex(LockManager& manager, std::string key, LockOptions options = {});

  /// For writers, as in Mutex. Excludes LockManager::lock() of the key as well.
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

  /// For readers, as LockManager::lockShared(). Each thread ends its own share: unlock_shared() does nothing
  /// on a thread that has none.
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
