#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// Lets other processes that work for the owner of a lock take the lock again (LockManager::ownerToken()). It
/// names the grant as the store shows it to everybody. It is not secret: with it, one can neither renew nor
/// release the lock. poco::OwnerPipe passes it to a child process.
struct OwnerToken {
  std::string key;               ///< With the namespace: as the store knows it.
  Holder grant;                  ///< As the store shows it. `remaining` is not used.
  std::optional<Fence> fence{};  ///< Of the owner's writes.
  std::stop_token ended{};       ///< Fires when the owner has let go of the lock, or has ended.
};

/// Wraps `driver` for a process that works for the owner of the locks that `tokens` name. A claim of such a
/// key is granted at once as long as the store says that the owner still has it. The grant has the owner's
/// fence and the rest of its lease. A renewal only reads the owner's lease again, and a release changes
/// nothing in the store. The grant is lost when `ended` fires, and when the owner's lease has ended. Each
/// grant and each renewal costs one request that only reads.
///
/// Everything else goes to `driver`: other keys, a key that the owner has lost, a claim of more than the
/// owner has of the key, and all claims if the store does not tell other processes how long a lease still
/// runs (mysql+getlock). Claims of several managers or processes for the same owner do not exclude each
/// other. Returns `driver` itself when there are no tokens. `clock` is that of the managers.
[[nodiscard]] LOCKKEEPER_CORE_EXPORT std::shared_ptr<LockDriver> withOwner(
    std::shared_ptr<LockDriver> driver, std::vector<OwnerToken> tokens,
    std::shared_ptr<Clock> clock = systemClock());

}  // namespace lockkeeper
