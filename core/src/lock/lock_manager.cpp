#include "lockkeeper/lock_manager.h"

#include <stdexcept>

#include "lock/engine.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"

namespace lockkeeper {

LockManager::LockManager(std::shared_ptr<LockDriver> driver, ManagerOptions options)
    : engine_(std::make_shared<detail::Engine>(std::move(driver), std::move(options))) {}

LockManager::LockManager() noexcept = default;

LockManager::LockManager(LockManager&&) noexcept = default;

LockManager LockManager::share() const {
  LockManager other;
  other.engine_ = engine();
  return other;
}

LockManager& LockManager::operator=(LockManager&& other) noexcept {
  if (this != &other) {
    LockManager ended(std::move(*this));
    engine_ = std::move(other.engine_);
  }
  return *this;
}

LockManager::~LockManager() {
  if (engine_ == nullptr) return;
  const Instant until = engine_->callEnd(engine_->now());
  detail::Engine::leave(std::move(engine_), until);
}

// By value: a callback of the call, such as a Listener, may move or destroy the manager.
std::shared_ptr<detail::Engine> LockManager::engine() const {
  if (!engine_) throw std::logic_error("this LockManager was moved from: it can only be assigned to");
  return engine_;
}

std::optional<Lock> LockManager::tryLock(std::string_view key, const LockOptions& options) {
  const auto engine = this->engine();
  return engine->acquire(key, engine->termsOf(options, std::chrono::milliseconds{0}));
}

std::optional<Lock> LockManager::tryLockAhead(std::string_view key, const LockOptions& options) {
  const auto engine = this->engine();
  detail::LockTerms terms = engine->termsOf(options, std::chrono::milliseconds{0});
  terms.ahead = true;
  return engine->acquire(key, terms);
}

Lock LockManager::lock(std::string_view key, const LockOptions& options) {
  const auto engine = this->engine();
  const detail::LockTerms terms = engine->termsOf(options, forever);
  if (auto held = engine->acquire(key, terms)) return std::move(*held);
  if (terms.stop.stop_requested() || engine->stopped())
    throw Cancelled("the wait for the lock " + quoted(key) + " was cancelled");
  if (terms.waitFor == std::chrono::milliseconds{0})
    throw LockTimeout("the lock " + quoted(key) + " is busy");
  throw LockTimeout("the lock " + quoted(key) + " was busy for " + formatDuration(terms.waitFor));
}

namespace {

LockOptions shared(const LockOptions& options) {
  LockOptions reader = options;
  reader.share = readerShare;
  return reader;
}

}  // namespace

std::optional<Lock> LockManager::tryLockShared(std::string_view key, const LockOptions& options) {
  return tryLock(key, shared(options));
}

Lock LockManager::lockShared(std::string_view key, const LockOptions& options) {
  return lock(key, shared(options));
}

void LockManager::requireShares() const { (void)engine()->permits(); }

std::vector<Holder> LockManager::shareHolders(std::string_view key) { return engine()->shareHolders(key); }

bool LockManager::resizeShares(std::string_view key, std::uint32_t limit) {
  return engine()->resize(key, limit);
}

void LockManager::releaseHeld(Lock& held) {
  const std::string key(held.key());
  const bool valid = held.valid();
  if (held.release() == ReleaseResult::notOwner || !valid) {
    throw LockLost("the lock " + quoted(key) + " was lost before its work was done");
  }
}

void LockManager::ping(std::chrono::milliseconds within) {
  try {
    lock("lockkeeper.ping", {.waitFor = within}).release();
  } catch (const LockTimeout&) {
    // Another process asks: the store has answered.
  }
}

void LockManager::stop() noexcept {
  if (engine_) engine_->stop();
}

bool LockManager::stopped() const noexcept { return engine_ && engine_->stopped(); }

const LockOptions& LockManager::defaults() const { return engine()->options().lock; }

const Environment& LockManager::environment() const { return engine()->options().environment; }

std::optional<Holder> LockManager::holder(std::string_view key) { return engine()->holder(key); }

std::optional<OwnerToken> LockManager::ownerToken(const Lock& held) { return engine()->ownerToken(held); }

std::size_t LockManager::suspectLocks() const { return engine()->suspectLocks(); }

Promises LockManager::promises() const { return engine()->promises(); }

}  // namespace lockkeeper
