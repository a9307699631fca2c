#include "lock/engine.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "base/fork_generation.h"
#include "lock/manager_options.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/internal/hook.h"

namespace lockkeeper::detail {

namespace {

bool perhapsApplied(ErrorCode code) {
  return code == ErrorCode::outcomeUnknown || code == ErrorCode::protocol;
}

bool worthRetrying(ErrorCode code) {
  return code == ErrorCode::outcomeUnknown || code == ErrorCode::storeUnavailable;
}

}  // namespace

Engine::Engine(std::shared_ptr<LockDriver> driver, ManagerOptions options)
    : generation_(forkGeneration()),
      options_(completed(std::move(options))),
      driver_(std::move(driver)),
      waitable_(dynamic_cast<Waitable*>(driver_.get())),
      queue_(options_.environment.clock),
      keeper_(std::make_shared<LeaseKeeper>(driver_, options_.environment, options_.owner,
                                            options_.operationTimeout, options_.backoffCap)) {
  if (driver_ == nullptr) throw std::invalid_argument("a LockManager needs a driver");
}

Engine::~Engine() {
  if (inherited()) {
    // The threads are not here, the mutexes may be held by them for ever, the sockets are the parent's: let
    // go of all of it without touching it.
    new (std::nothrow) auto(keeper_);
    new (std::nothrow) auto(driver_);
    return;
  }
  keeper_->shutDown();
}

bool Engine::inherited() const noexcept { return generation_ != forkGeneration(); }

void Engine::refuseInherited() const {
  if (inherited()) {
    throw ForkedError(
        "this LockManager was made before fork(): make a new one, with a new driver, in the child");
  }
}

std::string Engine::fullKey(std::string_view key) const {
  checkKey(key);
  std::string full;
  if (options_.keyNamespace.empty()) return full.append(key);
  full.reserve(options_.keyNamespace.size() + 1 + key.size());
  return full.append(options_.keyNamespace).append(1, ':').append(key);
}

std::optional<Lock> Engine::acquire(std::string_view key, const LockOptions& options) {
  refuseInherited();
  checkOptions(options);
  std::string full = fullKey(key);
  keeper_->start();

  const Instant started = now();
  const Instant waitUntil = started + options.waitFor;
  Listener& listener = *options_.environment.listener;
  if (auto turn = queue_.enter(full, waitUntil, options.stop)) {
    const std::size_t prefix = full.size() - key.size();
    const Token token = Token::generate(*options_.environment.random);
    auto lease = std::make_shared<Lease>(*this, std::move(full), prefix, token, options);
    lease->turn = std::move(*turn);
    try {
      if (claim(*lease, options, waitUntil)) {
        keeper_->add(lease);
        callHook([&] { listener.acquired(lease->key, lease->acquiredAt - started, lease->fence); });
        return Lock(shared_from_this(), std::move(lease));
      }
    } catch (const Error& error) {
      { const LocalQueue::Turn ended = std::move(lease->turn); }
      callHook([&] { listener.gaveUp(lease->key, error.code(), now() - started); });
      throw;
    }
    full = lease->key;
  } else if (storeFails_ && queue_.isBeingClaimed(full) && !options.stop.stop_requested()) {
    callHook([&] { listener.gaveUp(full, ErrorCode::storeUnavailable, now() - started); });
    throw StoreUnavailable("the store does not answer the caller of this process that is ahead for the key");
  }
  callHook([&] {
    if (options.stop.stop_requested()) {
      listener.gaveUp(full, ErrorCode::cancelled, now() - started);
    } else {
      listener.timedOut(full, now() - started);
    }
  });
  return std::nullopt;
}

bool Engine::claim(Lease& lease, const LockOptions& options, Instant waitUntil) {
  const Environment& environment = options_.environment;
  Backoff backoff(options_.backoffInitial, options_.backoffCap);
  const Instant latest = saturatingAdd(waitUntil, options_.operationTimeout);
  std::exception_ptr failure;
  bool sent = false;  // an earlier attempt with this token may have been applied

  for (;;) {
    std::optional<std::chrono::nanoseconds> retryAfter;
    try {
      const Instant deadline = std::min(now() + options_.operationTimeout, latest);
      const auto result =
          attempt({lease.claim(), lease.ttlMilliseconds(), deadline, sent}, waitUntil, options.stop);
      sent = false;
      storeFails_ = false;
      if (const auto* granted = std::get_if<Granted>(&result)) {
        if (accept(lease, *granted, options)) {
          lease.turn.markHeld();
          return true;
        }
        giveBack(lease);
        failure = std::make_exception_ptr(
            OutcomeUnknown("the lock was granted too late to be used, and is given back"));
      } else {
        failure = nullptr;
        retryAfter = std::get<Busy>(result).retryAfter;
      }
    } catch (const Error& error) {
      reportFailure(lease, error);
      failure = std::current_exception();
      const bool firstDoubt = perhapsApplied(error.code()) && !sent;
      sent = sent || firstDoubt;
      storeFails_ = worthRetrying(error.code());
      if (!worthRetrying(error.code())) break;
      // Most doubts come from a connection that died: the same token, sent again, tells at once.
      if (firstDoubt && now() < latest && !options.stop.stop_requested()) continue;
    }
    if (now() >= waitUntil || options.stop.stop_requested()) break;
    auto pause = backoff.next(*environment.random);
    if (retryAfter)
      pause = std::min<std::chrono::nanoseconds>(pause, *retryAfter + std::chrono::milliseconds{1});
    if (!pauseUntil(*environment.clock, std::min(now() + pause, waitUntil), options.stop)) break;
    // Where nothing is in doubt, what is left of this attempt must not be taken for the next one's.
    if (!sent) lease.token = Token::generate(*environment.random);
  }
  if (sent) giveBack(lease);
  if (failure && !options.stop.stop_requested()) std::rethrow_exception(failure);
  return false;
}

AcquireResult Engine::attempt(const AcquireRequest& request, Instant waitUntil, const std::stop_token& stop) {
  if (waitable_ == nullptr || waitUntil <= now()) return driver_->acquire(request);
  return waitable_->acquireWaiting(request, waitUntil, stop);
}

bool Engine::accept(Lease& lease, const Granted& granted, const LockOptions& options) {
  lease.acquiredAt = now();
  if (options.maxHold) lease.holdUntil = saturatingAdd(lease.acquiredAt, *options.maxHold);
  lease.fence = granted.fence;
  lease.leased(granted.leasedFrom);
  return lease.acquiredAt < lease.validUntil.load(std::memory_order_relaxed);
}

void Engine::giveBack(const Lease& lease) { keeper_->abandon(lease.claim(), now() + lease.ttl); }

void Engine::reportFailure(const Lease& lease, const Error& error) {
  callHook([&] { options_.environment.listener->storeFailed(lease.key, error.code(), error.what()); });
}

void Engine::renew(Lease& lease) {
  refuseInherited();
  if (!lease.valid()) throw LockLost("the lock is lost: it cannot be renewed");
  const Instant started = now();
  Renewal renewal{lease.claim(), lease.ttlMilliseconds(), RenewOutcome::unknown, started};
  const Instant end = lease.validUntil.load(std::memory_order_relaxed);
  driver_->renew({&renewal, 1}, std::min(started + options_.operationTimeout, end));
  if (keeper_->renewed(lease, renewal.outcome, renewal.leasedFrom)) return;
  if (!lease.alive()) throw LockLost(std::string("the lock is lost: ") + toString(lease.lossReason));
  if (renewal.outcome == RenewOutcome::unavailable) {
    throw StoreUnavailable("the lock was not renewed: its old lease runs on");
  }
  throw OutcomeUnknown("the lock was perhaps renewed: its old lease runs on at least");
}

ReleaseResult Engine::release(Lease& lease) noexcept {
  if (inherited()) return ReleaseResult::notHeld;
  const bool wasAlive = keeper_->remove(lease);
  if (!wasAlive && lease.lossReason == LossReason::ownershipUncertain) return ReleaseResult::notOwner;
  const bool wasValid = wasAlive && now() < lease.validUntil.load(std::memory_order_relaxed);
  const ReleaseResult result = sendRelease(lease, wasValid);
  if (wasAlive) letGo(lease, result == ReleaseResult::notOwner && wasValid);
  return result;
}

ReleaseResult Engine::releaseHeldFor(Lease& lease, std::chrono::milliseconds atLeast) noexcept {
  if (inherited()) return ReleaseResult::notHeld;
  const auto rest =
      std::chrono::ceil<std::chrono::milliseconds>(saturatingAdd(lease.acquiredAt, atLeast) - now());
  if (rest <= rest.zero()) return release(lease);
  // Lost: the lease ends by itself. To ask for its release, as usual, might free the key too early.
  if (!keeper_->remove(lease)) return ReleaseResult::notOwner;
  const ReleaseResult result = sendLastRenewal(lease, std::max(rest, shortestTtl));
  letGo(lease, result == ReleaseResult::notOwner);
  return result;
}

ReleaseResult Engine::sendLastRenewal(Lease& lease, std::chrono::milliseconds rest) {
  Renewal renewal{lease.claim(), rest, RenewOutcome::unknown, now()};
  try {
    driver_->renew({&renewal, 1}, now() + options_.operationTimeout);
  } catch (...) {
    // A driver that breaks its contract: the outcome that it did not write is unknown.
  }
  switch (renewal.outcome) {
    case RenewOutcome::renewed:
      return ReleaseResult::released;
    case RenewOutcome::notOwner:
      lease.lossReason = LossReason::notOwner;
      return ReleaseResult::notOwner;
    case RenewOutcome::ownershipUncertain:
      lease.lossReason = LossReason::ownershipUncertain;
      return ReleaseResult::notOwner;
    case RenewOutcome::unavailable:
      return ReleaseResult::unavailable;
    case RenewOutcome::unknown:
      break;
  }
  return ReleaseResult::unknown;
}

void Engine::letGo(Lease& lease, bool foundLost) {
  { const LocalQueue::Turn ended = std::move(lease.turn); }
  Listener& listener = *options_.environment.listener;
  callHook([&] {
    if (foundLost) {
      listener.lost(lease.key, lease.lossReason);
    } else {
      listener.released(lease.key, now() - lease.acquiredAt);
    }
  });
}

ReleaseResult Engine::sendRelease(Lease& lease, bool wasValid) {
  const Instant deadline = now() + options_.operationTimeout;
  for (bool again = false;; again = true) {
    try {
      const ReleaseOutcome outcome = driver_->release(lease.claim(), deadline);
      // A lease that ran until it was released can only have been ended by the first, unanswered request.
      if (outcome == ReleaseOutcome::released || (again && wasValid)) return ReleaseResult::released;
      if (wasValid) {
        lease.lossReason =
            outcome == ReleaseOutcome::notOwner ? LossReason::notOwner : LossReason::ownershipUncertain;
      }
      return ReleaseResult::notOwner;
    } catch (const Error& error) {
      reportFailure(lease, error);
      const bool doubt = perhapsApplied(error.code());
      if (doubt && !again && now() < deadline) continue;
      giveBack(lease);
      return doubt || again ? ReleaseResult::unknown : ReleaseResult::unavailable;
    } catch (...) {
      return ReleaseResult::unknown;  // a driver that breaks its contract; the lease ends by itself
    }
  }
}

std::optional<Holder> Engine::holder(std::string_view key) {
  refuseInherited();
  return driver_->holder(fullKey(key), now() + options_.operationTimeout);
}

}  // namespace lockkeeper::detail
