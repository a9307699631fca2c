#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/export.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper {

/// A number of permits for a key that all processes share: "at most 3 exports at a time". What is acquired is
/// a Lock with a lease of its own, which is renewed: the permits of a holder that dies are free again after
/// its ttl. Where the store has a queue, waiters are served in the order in which they came: waiters for few
/// permits do not overtake one that waits for many. All users of the key must name the same number of
/// permits. Thread-safe.
class LOCKKEEPER_CORE_EXPORT Semaphore {
 public:
  /// 1 to Share::most permits. `options` apply to its locks; their share is not used. `manager` may be moved
  /// or destroyed afterwards. Sends nothing. Throws std::invalid_argument for a number, a key or an option
  /// out of range, and ConfigError, with the reason, if the store does not support it.
  Semaphore(LockManager& manager, std::string key, std::uint32_t permits, LockOptions options = {});

  /// Takes `count` permits at once. Returns nothing when there were not enough for the whole `waitFor`.
  /// Otherwise as LockManager::tryLock(); throws ConfigError when others use the key with another number of
  /// permits.
  [[nodiscard]] std::optional<Lock> tryAcquire(std::uint32_t count = 1,
                                               std::chrono::milliseconds waitFor = std::chrono::milliseconds{
                                                   0});

  /// The same, but waits for ever unless the options have a waitFor. Otherwise as LockManager::lock().
  [[nodiscard]] Lock acquire(std::uint32_t count = 1);

  /// The number of permits, as far as this object knows.
  std::uint32_t permits() const noexcept { return permits_; }

  /// Changes the number of permits, for this object and, while somebody has any, in the store. Nobody loses a
  /// permit; if more are taken than there are now, nothing is granted until enough are released. Objects with
  /// another number, in this and other processes, get ConfigError until they are resized as well. One
  /// attempt.
  void resize(std::uint32_t permits);

  /// The present holders and how many permits each has. One attempt.
  [[nodiscard]] std::vector<Holder> holders();

 private:
  LockOptions asking(std::uint32_t count) const;

  LockManager manager_;
  const std::string key_;
  const LockOptions options_;
  std::atomic<std::uint32_t> permits_;
};

}  // namespace lockkeeper
