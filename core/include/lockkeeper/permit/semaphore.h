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

/// So many permits for a key, among all processes: "at most 3 exports at a time". What was acquired is a
/// Lock, with a lease of its own that is renewed: the permits of a holder that dies are free again after its
/// ttl. First come, first served, in the store's queue where it has one: a waiter for many permits is not
/// overtaken by waiters for few. All users of the key must name the same number. Thread-safe.
class LOCKKEEPER_CORE_EXPORT Semaphore {
 public:
  /// 1 to Share::most permits. `options` are those of its locks; their share is not used. Goes on when
  /// `manager` is moved or destroyed. Sends nothing. Throws std::invalid_argument for a number, a key or an
  /// option out of range, and ConfigError, with the reason, when the store cannot do it.
  Semaphore(LockManager& manager, std::string key, std::uint32_t permits, LockOptions options = {});

  /// `count` permits at once, or nothing when there were not so many for `waitFor`. As
  /// LockManager::tryLock(); throws ConfigError when others have the key with another number of permits.
  [[nodiscard]] std::optional<Lock> tryAcquire(std::uint32_t count = 1,
                                               std::chrono::milliseconds waitFor = std::chrono::milliseconds{
                                                   0});

  /// Waits until it has them, unless the options have a waitFor. As LockManager::lock().
  [[nodiscard]] Lock acquire(std::uint32_t count = 1);

  /// How many there are, as far as this object knows.
  std::uint32_t permits() const noexcept { return permits_; }

  /// From now on, there are so many: for this object, and in the store while somebody has any. Nobody loses
  /// one; if more are taken, nothing is granted until fewer are. Objects with another number, here and
  /// elsewhere, get ConfigError until they are resized, too. One attempt.
  void resize(std::uint32_t permits);

  /// Who has how many now. One attempt.
  [[nodiscard]] std::vector<Holder> holders();

 private:
  LockOptions asking(std::uint32_t count) const;

  LockManager manager_;
  const std::string key_;
  const LockOptions options_;
  std::atomic<std::uint32_t> permits_;
};

}  // namespace lockkeeper
