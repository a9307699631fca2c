#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "lockkeeper/export.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper {

/// A share of a key whose holder reads beside other readers (LockManager::lockShared()) and may become the
/// writer. Only one holder at a time has such a share, so no two wait for each other to become the writer.
/// While it is upgraded, nobody else has the key. Each of the two shares that it has then is a lease that is
/// renewed; when one is lost, the lock is lost.
///
/// Movable; one thread at a time, except valid(), isUpgraded() and lost() beside each other. Lets go of all
/// when it is destroyed, as ~Lock does. After fork() the child holds nothing.
class LOCKKEEPER_CORE_EXPORT UpgradeableLock {
 public:
  /// Waits as LockManager::lock() does. Goes on when `manager` is moved or destroyed. Throws ConfigError,
  /// with the reason, when the store cannot do it. The options' share is not used.
  [[nodiscard]] static UpgradeableLock lock(LockManager& manager, std::string_view key,
                                            const LockOptions& options = {});
  /// Likewise, as LockManager::tryLock().
  [[nodiscard]] static std::optional<UpgradeableLock> tryLock(LockManager& manager, std::string_view key,
                                                              const LockOptions& options = {});

  UpgradeableLock(UpgradeableLock&&) noexcept;
  UpgradeableLock& operator=(UpgradeableLock&&) noexcept;
  ~UpgradeableLock();

  /// True while work under the lock may go on: reading, or, while it is upgraded, writing. Local, no I/O.
  /// Once false it stays false.
  [[nodiscard]] bool valid() const noexcept;
  /// Whether it is the writer. Local, no I/O.
  [[nodiscard]] bool isUpgraded() const noexcept;
  /// Fires when it is lost, as Lock::lost().
  [[nodiscard]] std::stop_token lost() const noexcept;
  /// As a reader, the last writer's, as in LockManager::lockShared(); as the writer, a new one.
  [[nodiscard]] std::optional<Fence> fence() const noexcept;

  /// Becomes the writer when the other readers have gone, ahead of all waiters for the key. No new reader is
  /// let in meanwhile. Waits for them until then, unless the options' stop fires or the manager is stopped
  /// (throws Cancelled). Throws LockLost when the lock is lost meanwhile, and as LockManager::lock() and
  /// Lock::renew(), by which it finds out whether it still was a reader; then it is one still, unless it is
  /// lost.
  void upgrade();
  /// Likewise. False when there were other readers for `waitFor`.
  [[nodiscard]] bool tryUpgrade(std::chrono::milliseconds waitFor = std::chrono::milliseconds{0});

  /// Is a reader again, and nobody has written meanwhile. Blocks and answers like Lock::release().
  ReleaseResult downgrade() noexcept;

  /// Lets go of all. Blocks and answers like Lock::release().
  ReleaseResult release() noexcept;

 private:
  struct State;
  explicit UpgradeableLock(std::unique_ptr<State> state) noexcept;
  bool take(std::chrono::milliseconds waitFor);
  void confirmReader();

  std::unique_ptr<State> state_;  // null when it was moved from
};

}  // namespace lockkeeper
