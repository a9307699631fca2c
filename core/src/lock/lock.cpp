#include "lockkeeper/lock.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lock/engine.h"
#include "lockkeeper/error.h"

namespace lockkeeper {

const char* toString(ReleaseResult result) noexcept {
  switch (result) {
    case ReleaseResult::released:
      return "released";
    case ReleaseResult::notOwner:
      return "not the owner any more";
    case ReleaseResult::unavailable:
      return "store unavailable";
    case ReleaseResult::unknown:
      return "outcome unknown";
    case ReleaseResult::notHeld:
      return "not held";
  }
  return "unknown";
}

// A Lock without an engine is over: released, or moved from. What any thread may call looks at the lease
// alone, since release() takes the engine away.

Lock::Lock(std::shared_ptr<detail::Engine> engine, std::shared_ptr<detail::Lease> lease) noexcept
    : engine_(std::move(engine)), lease_(std::move(lease)) {}

Lock::Lock(Lock&&) noexcept = default;

Lock& Lock::operator=(Lock&& other) noexcept {
  if (this != &other) {
    end(false);
    engine_ = std::move(other.engine_);
    lease_ = std::move(other.lease_);
  }
  return *this;
}

Lock::~Lock() { end(false); }

bool Lock::valid() const noexcept { return lease_ && lease_->valid(); }

std::chrono::nanoseconds Lock::remaining() const noexcept {
  if (!valid()) return std::chrono::nanoseconds::zero();
  const auto left = lease_->validUntil.load(std::memory_order_acquire) - lease_->context->clock->now();
  return std::max(left, std::chrono::nanoseconds::zero());
}

LockState Lock::state() const noexcept {
  if (!lease_ || lease_->context->forkGuard.inherited()) return LockState::released;
  lease_->valid();
  return lease_->state.load(std::memory_order_acquire);
}

std::stop_token Lock::lost() const noexcept { return lease_ ? lease_->lostToken() : std::stop_token(); }

std::optional<Fence> Lock::fence() const noexcept { return lease_ ? lease_->fence() : std::nullopt; }

Fence Lock::requireFence() const {
  if (!lease_) throw std::logic_error("this Lock was moved from or holds nothing: it has no fence");
  if (const auto fence = lease_->fence()) return *fence;
  throw ConfigError("the lock " + quoted(key()) +
                    " has no fence: its store promises none, or none in this phase of a migration");
}

std::string_view Lock::key() const noexcept {
  if (!lease_) return {};
  return std::string_view(lease_->key()).substr(lease_->context->namespaceBytes);
}

void Lock::renew() {
  if (!engine_) throw LockLost("the lock was released: it cannot be renewed");
  engine_->renew(*lease_);
}

ReleaseResult Lock::release() noexcept { return end(true); }

ReleaseResult Lock::end(bool awaited, Instant latest) noexcept {
  if (!engine_) return ReleaseResult::notHeld;
  auto engine = std::exchange(engine_, nullptr);
  const Instant began = engine->now();
  const Instant until = std::min(engine->callEnd(began), latest);
  const ReleaseResult result = engine->release(*lease_, began, until, awaited);
  detail::Engine::leave(std::move(engine), until);
  return result;
}

ReleaseResult Lock::releaseHeldFor(std::chrono::milliseconds atLeast) noexcept {
  if (!engine_) return ReleaseResult::notHeld;
  auto engine = std::exchange(engine_, nullptr);
  const Instant began = engine->now();
  const ReleaseResult result = engine->releaseHeldFor(*lease_, began, atLeast);
  const Instant until = engine->callEnd(began);
  detail::Engine::leave(std::move(engine), until);
  return result;
}

}  // namespace lockkeeper
