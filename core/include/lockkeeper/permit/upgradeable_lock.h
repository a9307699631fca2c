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
/// writer. Only one holder at a time has such a share, so no two holders wait for each other to become the
/// writer. While the lock is upgraded, nobody else has the key. It then has two shares, each with a lease
/// that is renewed; when one of them is lost, the lock is lost.
///
/// Movable. Use it on one thread at a time; only valid(), isUpgraded() and lost() may run at the same time.
/// The destructor releases everything, as ~Lock does. After fork() the child holds nothing.
class LOCKKEEPER_CORE_EXPORT UpgradeableLock {
 public:
  /// Waits as LockManager::lock() does. `manager` may be moved or destroyed afterwards. Throws ConfigError,
  /// with the reason, if the store does not support it. The options' share is not used.
  [[nodiscard]] static UpgradeableLock lock(LockManager& manager, std::string_view key,
                                            const LockOptions& options = {});
  /// Likewise, as LockManager::tryLock().
  [[nodiscard]] static std::optional<UpgradeableLock> tryLock(LockManager& manager, std::string_view key,
                                                              const LockOptions& options = {});

  UpgradeableLock(UpgradeableLock&&) noexcept;
  UpgradeableLock& operator=(UpgradeableLock&&) noexcept;
  ~UpgradeableLock();

  /// True while work under the lock may go on: reading and, while it is upgraded, writing. Local, no I/O.
  /// Once false it stays false.
  [[nodiscard]] bool valid() const noexcept;
  /// Whether it is the writer. Local, no I/O.
  [[nodiscard]] bool isUpgraded() const noexcept;
  /// Fires when it is lost, as Lock::lost().
  [[nodiscard]] std::stop_token lost() const noexcept;
  /// A reader has the last writer's fence, as in LockManager::lockShared(); the writer has a new one.
  [[nodiscard]] std::optional<Fence> fence() const noexcept;

  /// Waits until the other readers have gone, and becomes the writer, ahead of all waiters for the key. No
  /// new reader is let in meanwhile. Throws Cancelled when the options' stop fires or the manager is stopped,
  /// and LockLost when the lock is lost meanwhile. It also renews the reader's lease, to see that it is still
  /// held, so it throws as LockManager::lock() and Lock::renew() do. After an exception, the lock is still a
  /// reader's unless it is lost.
  void upgrade();
  /// The same, but returns false when there were other readers for the whole `waitFor`.
  [[nodiscard]] bool tryUpgrade(std::chrono::milliseconds waitFor = std::chrono::milliseconds{0});

  /// Becomes a reader again, with no other writer in between. Blocks and returns as Lock::release() does.
  ReleaseResult downgrade() noexcept;

  /// Releases everything. Blocks and returns as Lock::release() does.
  ReleaseResult release() noexcept;

 private:
  struct State;
  explicit UpgradeableLock(std::unique_ptr<State> state) noexcept;
  bool take(std::chrono::milliseconds waitFor);
  void confirmReader();

  std::unique_ptr<State> state_;  // null when it was moved from
};

}  // namespace lockkeeper
