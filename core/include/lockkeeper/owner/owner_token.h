#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// A lock that is held, for other processes that work for its owner (LockManager::ownerToken()): they may
/// lock the key again. It names the grant as the store shows it to everybody, and is not secret: who has it
/// can neither renew nor release the lock. poco::OwnerPipe gives it to a process that is started.
struct OwnerToken {
  std::string key;               ///< With the namespace: as the store knows it.
  Holder grant;                  ///< As the store shows it. `remaining` is not used.
  std::optional<Fence> fence{};  ///< Of the owner's writes.
  std::stop_token ended{};       ///< Fires when the owner has let go of the lock, or has ended.
};

/// `driver`, for a process that works for the owner of the locks that `tokens` name. Who claims such a key is
/// granted it at once as long as the store says that the owner still has it: the grant has the owner's fence,
/// and what is left of its lease. To renew it is to look again; to release it changes nothing in the store.
/// It is lost when `ended` fires, and when the owner's lease has ended. Each grant costs one request that
/// only reads, and so does each renewal.
///
/// All else goes to `driver`: other keys, a key that the owner has lost, and a claim of more than the owner
/// has of it. So do claims where the store does not tell other processes how long a lease still runs
/// (mysql+getlock). Claims of several managers or processes for the same owner do not exclude each other.
/// Returns `driver` itself when there are no tokens. `clock` is that of the managers.
[[nodiscard]] LOCKKEEPER_CORE_EXPORT std::shared_ptr<LockDriver> withOwner(
    std::shared_ptr<LockDriver> driver, std::vector<OwnerToken> tokens,
    std::shared_ptr<Clock> clock = systemClock());

}  // namespace lockkeeper
