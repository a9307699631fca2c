#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "lock/engine.h"
#include "lock/store_errors.h"

// How Engine releases locks.

namespace lockkeeper::detail {

namespace {

// The worst one comes first.
constexpr std::array worstFirst{ReleaseResult::notOwner, ReleaseResult::unknown, ReleaseResult::unavailable,
                                ReleaseResult::released, ReleaseResult::notHeld};

ReleaseResult worse(ReleaseResult a, ReleaseResult b) {
  return *std::min(std::ranges::find(worstFirst, a), std::ranges::find(worstFirst, b));
}

}  // namespace

struct Engine::Released {
  ReleaseResult result;
  int attempts = 1;
  std::optional<ErrorCode> error{};  // why the store has not confirmed it
  std::string text{};                // the same in words, unless an event has told them
};

struct Engine::Releasing {
  Lease& lease;
  bool wasAlive = false;
  bool wasValid = false;
  ReleaseOutcome outcome{};  // as the store has told it
  Released released{ReleaseResult::unknown};
};

ReleaseResult Engine::release(Lease& lease, Instant began, Instant until, bool awaited) noexcept {
  if (forkGuard_.inherited()) return ReleaseResult::notHeld;
  Releasing one{lease};
  if (const auto known = beginRelease(one, began, awaited)) return *known;
  const Claim claim = lease.claim();
  sendReleases({&one, 1}, {&claim, 1}, began, until);
  return finishRelease(one);
}

ReleaseResult Engine::releaseAll(std::span<Lock> locks, Instant until, bool awaited) noexcept {
  ReleaseResult worst = ReleaseResult::notHeld;
  if (forkGuard_.inherited()) return worst;
  // Shares are released one by one.
  const bool together = releasing_ != nullptr && locks.size() > 1 && !locks.front().lease_->sharing();
  if (together && releaseTogether(locks, now(), until, awaited, worst)) return worst;
  for (auto lock = locks.rbegin(); lock != locks.rend(); ++lock)
    worst = worse(worst, lock->end(awaited, until));
  return worst;
}

// If there is no memory for it, returns false and has done nothing.
bool Engine::releaseTogether(std::span<Lock> locks, Instant began, Instant until, bool awaited,
                             ReleaseResult& worst) {
  std::vector<Releasing> open;
  std::vector<Claim> claims;
  try {
    open.reserve(locks.size());
    claims.reserve(locks.size());
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (auto lock = locks.rbegin(); lock != locks.rend(); ++lock) {
    if (!lock->engine_) continue;
    lock->engine_.reset();  // the set has another one
    Releasing each{*lock->lease_};
    if (const auto known = beginRelease(each, began, awaited)) {
      worst = worse(worst, *known);
    } else {
      claims.push_back(each.lease.claim());
      open.push_back(std::move(each));
    }
  }
  if (!open.empty()) sendReleases(open, claims, began, until);
  for (Releasing& each : open) worst = worse(worst, finishRelease(each));
  return true;
}

// Does what comes before the store is asked. Returns the result if the store need not be asked, or if nobody
// waits for its answer.
std::optional<ReleaseResult> Engine::beginRelease(Releasing& each, Instant began, bool awaited) noexcept {
  Lease& lease = each.lease;
  if (handOver(lease, began)) return ReleaseResult::released;
  each.wasAlive = keeper_->remove(lease);
  if (!each.wasAlive && lease.lossReason == LossReason::ownershipUncertain) return ReleaseResult::notOwner;
  each.wasValid = each.wasAlive && began < lease.validUntil.load(std::memory_order_relaxed);
  lease.endHolding(began, each.wasAlive, each.wasValid);
  if (awaited || !keeper_->post(lease)) return std::nullopt;
  // The store gets it before what the next caller of this process asks.
  lease.turn.leave();
  return ReleaseResult::unknown;
}

ReleaseResult Engine::finishRelease(Releasing& each) {
  const ReleaseResult result = each.released.result;
  if (result == ReleaseResult::released) keeper_->freed(each.lease);
  if (each.wasAlive)
    endRelease(each.lease, each.released, result == ReleaseResult::notOwner && each.wasValid);
  return result;
}

// Hands the lease to the next caller in line, without asking the store. False if that is not possible.
bool Engine::handOver(Lease& lease, Instant began) noexcept {
  if (lease.turnsLeft == 0) return false;
  const auto handingOn = keeper_->handingOnOf(lease);
  if (!handingOn || began >= handingOn->until) return false;
  if (waitable_ != nullptr && waitable_->waitersReportedSince(handingOn->askedAt)) return false;
  std::condition_variable* const next = keeper_->handOver(lease, began);
  if (next == nullptr) return false;
  // With no mutex held: the waiter needs them at once.
  next->notify_one();
  endRelease(lease, {.result = ReleaseResult::released, .attempts = 0}, false);
  return true;
}

ReleaseResult Engine::releaseHeldFor(Lease& lease, Instant began,
                                     std::chrono::milliseconds atLeast) noexcept {
  if (forkGuard_.inherited()) return ReleaseResult::notHeld;
  const Instant end = std::min(saturatingAdd(lease.acquiredAt, atLeast), saturatingAdd(began, longestTtl));
  if (end <= began) return release(lease, began, callEnd(began));
  // A lost lease is left to end by itself: a release might free the key before `end`.
  if (!keeper_->leaveToEnd(lease, end)) return ReleaseResult::notOwner;
  const Released released = sendLastRenewal(lease);
  endRelease(lease, released, released.result == ReleaseResult::notOwner && !lease.mayHaveEnded(now()));
  return released.result;
}

Engine::Released Engine::sendLastRenewal(Lease& lease) {
  const Instant began = now();
  Renewal renewal = lease.lastRenewal(began);
  try {
    driver_->renew({&renewal, 1}, callEnd(began));
  } catch (...) {
    // A driver that breaks its contract: the outcome that it did not write is unknown.
  }
  switch (renewal.outcome) {
    case RenewOutcome::renewed:
      return {.result = ReleaseResult::released};
    case RenewOutcome::notOwner:
      // It has ended by itself, after it had been kept for long enough.
      if (lease.mayHaveEnded(now()) && lease.heldUntil() <= lease.mayEndAt())
        return {.result = ReleaseResult::released};
      lease.lossReason = LossReason::notOwner;
      return {.result = ReleaseResult::notOwner};
    case RenewOutcome::ownerUnknown:
      lease.lossReason = LossReason::ownershipUncertain;
      return {.result = ReleaseResult::notOwner};
    case RenewOutcome::unavailable:
      return {ReleaseResult::unavailable, 1, ErrorCode::storeUnavailable, std::move(renewal.cause)};
    case RenewOutcome::unknown:
      break;
  }
  return {ReleaseResult::unknown, 1, ErrorCode::outcomeUnknown, std::move(renewal.cause)};
}

void Engine::endRelease(Lease& lease, const Released& released, bool foundLost) {
  lease.turn.leave();
  if (!options_.environment.listener) return;
  Event event = lease.endEvent(foundLost ? EventKind::lost : EventKind::released, store_, now());
  event.attempts = released.attempts;
  event.error = released.error;
  event.text = released.text;
  options_.environment.tell(event);
}

// Releases all of them in one request and writes their outcomes. If the outcome of the request is unknown, it
// is sent again once.
void Engine::sendReleases(std::span<Releasing> all, std::span<const Claim> claims, Instant began,
                          Instant until) {
  const auto endAll = [&](const Released& released) {
    for (Releasing& each : all) each.released = released;
  };
  const auto withdrawAll = [&] {
    for (const Releasing& each : all) withdraw(each.lease);
  };
  if (began >= until) {
    withdrawAll();
    return endAll({ReleaseResult::unavailable, 0, ErrorCode::storeUnavailable});
  }
  for (int attempts = 1;; ++attempts) {
    const bool again = attempts > 1;
    try {
      askRelease(all, claims, until);
      for (Releasing& each : all) {
        // If the lease was valid until now, only the first, unanswered request can have ended it, or its own
        // end, when this one was long on its way.
        const bool done = each.outcome == ReleaseOutcome::released ||
                          (each.wasValid && (again || each.lease.mayHaveEnded(now())));
        each.released = {done ? ReleaseResult::released : ReleaseResult::notOwner, attempts};
        if (!done && each.wasValid) each.lease.lossReason = lossReasonOf(each.outcome);
      }
      return;
    } catch (const Error& error) {
      tellFailure(all.front().lease, began, error);
      const bool doubt = perhapsApplied(error.code());
      if (doubt && !again && now() < until) continue;
      withdrawAll();
      return endAll(
          {doubt || again ? ReleaseResult::unknown : ReleaseResult::unavailable, attempts, error.code()});
    } catch (...) {
      // A driver that breaks its contract; the leases end by themselves.
      return endAll({ReleaseResult::unknown, attempts, ErrorCode::outcomeUnknown});
    }
  }
}

void Engine::askRelease(std::span<Releasing> all, std::span<const Claim> claims, Instant until) {
  if (all.size() == 1) {
    all.front().outcome = driver_->release(claims.front(), until);
    return;
  }
  const auto outcomes = releasing_->releaseAll(claims, until);
  for (std::size_t index = 0; index < all.size(); ++index) all[index].outcome = outcomes.at(index);
}

}  // namespace lockkeeper::detail
