#include "lockkeeper/lock_manager.h"

#include "lock/engine.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"

namespace lockkeeper {

LockManager::LockManager(std::shared_ptr<LockDriver> driver, ManagerOptions options)
    : engine_(std::make_shared<detail::Engine>(std::move(driver), std::move(options))) {}

LockManager::LockManager(LockManager&&) noexcept = default;

LockManager& LockManager::operator=(LockManager&& other) noexcept {
  if (this != &other) {
    LockManager ended(std::move(*this));
    engine_ = std::move(other.engine_);
  }
  return *this;
}

LockManager::~LockManager() {
  if (engine_ == nullptr) return;
  const Instant until = engine_->callEnd();
  detail::Engine::leave(std::move(engine_), until);
}

std::optional<Lock> LockManager::tryLock(std::string_view key, const LockOptions& options) {
  return engine_->acquire(key, options);
}

Lock LockManager::lock(std::string_view key, const LockOptions& options) {
  if (auto held = engine_->acquire(key, options)) return std::move(*held);
  if (options.stop.stop_requested())
    throw Cancelled("the wait for the lock " + quoted(key) + " was cancelled");
  throw LockTimeout("the lock " + quoted(key) + " was busy for " + formatDuration(options.waitFor));
}

void LockManager::releaseHeld(Lock& held) {
  const std::string key(held.key());
  const bool valid = held.valid();
  if (held.release() == ReleaseResult::notOwner || !valid) {
    throw LockLost("the lock " + quoted(key) + " was lost before its work was done");
  }
}

const LockOptions& LockManager::defaults() const { return engine_->options().lock; }

std::optional<Holder> LockManager::holder(std::string_view key) { return engine_->holder(key); }

Promises LockManager::promises() const { return engine_->promises(); }

}  // namespace lockkeeper
