#include "lockkeeper/permit/upgradeable_lock.h"

#include <utility>

#include "base/either_stop.h"
#include "lock/engine.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper {

namespace {

LockOptions reading(LockOptions options) {
  options.share = upgradeableShare;
  return options;
}

}  // namespace

struct UpgradeableLock::State {
  State(LockManager& its, LockOptions given, Lock share)
      : manager(its.share()), options(std::move(given)), reader(std::move(share)) {
    manager.engine()->loseTogether(reader, lost);
  }

  bool valid() const noexcept {
    return !lost.stop_requested() && reader.valid() && (!upgraded || writer.valid());
  }
  void upgrade(Lock rest) {
    writer = std::move(rest);
    upgraded = true;
    manager.engine()->loseTogether(writer, lost);
  }
  ReleaseResult downgrade() noexcept {
    if (!upgraded || forkGuard.inherited()) return ReleaseResult::notHeld;
    if (!writer.valid()) lost.request_stop();
    upgraded = false;
    return writer.release();
  }

  LockManager manager;
  const LockOptions options;
  const ForkGuard forkGuard{};
  std::stop_source lost{};  // of both shares
  Lock reader;
  Lock writer{};  // of the rest of the key
  bool upgraded = false;
};

UpgradeableLock UpgradeableLock::lock(LockManager& manager, std::string_view key,
                                      const LockOptions& options) {
  return UpgradeableLock(std::make_unique<State>(manager, options, manager.lock(key, reading(options))));
}

std::optional<UpgradeableLock> UpgradeableLock::tryLock(LockManager& manager, std::string_view key,
                                                        const LockOptions& options) {
  auto held = manager.tryLock(key, reading(options));
  if (!held) return std::nullopt;
  return UpgradeableLock(std::make_unique<State>(manager, options, std::move(*held)));
}

UpgradeableLock::UpgradeableLock(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
UpgradeableLock::UpgradeableLock(UpgradeableLock&&) noexcept = default;
UpgradeableLock& UpgradeableLock::operator=(UpgradeableLock&&) noexcept = default;
UpgradeableLock::~UpgradeableLock() = default;

bool UpgradeableLock::valid() const noexcept { return state_ && state_->valid(); }

bool UpgradeableLock::isUpgraded() const noexcept { return state_ && state_->upgraded; }

std::stop_token UpgradeableLock::lost() const noexcept {
  // In a forked child, as Lock::lost().
  return !state_                         ? std::stop_token()
         : state_->forkGuard.inherited() ? state_->reader.lost()
                                         : state_->lost.get_token();
}

std::optional<Fence> UpgradeableLock::fence() const noexcept {
  if (!state_) return std::nullopt;
  return state_->upgraded ? state_->writer.fence() : state_->reader.fence();
}

bool UpgradeableLock::take(std::chrono::milliseconds waitFor) {
  if (!valid()) throw LockLost("the lock is lost or was released: it cannot be upgraded");
  if (state_->upgraded) return true;
  LockOptions options = state_->options;
  if (!options.stop.stop_possible()) options.stop = state_->manager.defaults().stop;
  const detail::EitherStop stop(options.stop, state_->lost.get_token());
  options.stop = stop.token();
  options.waitFor = waitFor;
  options.share = restOfUpgradeable;
  auto rest = state_->manager.tryLockAhead(state_->reader.key(), options);
  if (rest) {
    state_->upgrade(std::move(*rest));
    confirmReader();
  }
  if (valid()) return rest.has_value();
  // Whoever came in when it was lost reads.
  state_->lost.request_stop();
  state_->downgrade();
  throw LockLost("the lock " + quoted(state_->reader.key()) + " was lost before it was upgraded");
}

/// The store grants the rest also where it has forgotten the reader's share, and lets others read then. Who
/// still has that share now has had both since the grant.
void UpgradeableLock::confirmReader() {
  try {
    state_->reader.renew();
  } catch (const LockLost&) {
    // Told by valid().
  } catch (const Error&) {
    state_->downgrade();
    throw;
  }
}

bool UpgradeableLock::tryUpgrade(std::chrono::milliseconds waitFor) { return take(waitFor); }

void UpgradeableLock::upgrade() {
  if (!take(forever))
    throw Cancelled("the wait for the other readers of " + quoted(state_->reader.key()) + " was cancelled");
}

ReleaseResult UpgradeableLock::downgrade() noexcept {
  return state_ ? state_->downgrade() : ReleaseResult::notHeld;
}

ReleaseResult UpgradeableLock::release() noexcept {
  if (!state_) return ReleaseResult::notHeld;
  const ReleaseResult writer = state_->downgrade();
  const ReleaseResult reader = state_->reader.release();
  return writer == ReleaseResult::notHeld || writer == ReleaseResult::released ? reader : writer;
}

}  // namespace lockkeeper
