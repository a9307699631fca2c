#include <algorithm>
#include <exception>
#include <list>
#include <optional>
#include <stdexcept>
#include <utility>

#include "lock/engine_call.h"
#include "lock/store_errors.h"

// How Engine claims keys.

namespace lockkeeper::detail {

namespace {

ClaimSteps::Failure failureOf(const Error& error) {
  if (isWithdrawn(error)) return ClaimSteps::Failure::withdrawn;
  switch (error.code()) {
    case ErrorCode::storeUnavailable:
      return ClaimSteps::Failure::unavailable;
    case ErrorCode::outcomeUnknown:
      return ClaimSteps::Failure::unknown;
    case ErrorCode::protocol:
      return ClaimSteps::Failure::broken;
    default:
      return ClaimSteps::Failure::refused;
  }
}

// How many holders of this process may use one grant of the store, one after the other. Other processes may
// have to wait for all of them. Each turn takes a fence, used or not: with more turns, the fences of a store
// that counts microseconds would run ahead of its clock.
constexpr std::uint8_t mostTurns = 64;

// The longest wait in a store's queue that one call asks for. Core asks again when it is over.
constexpr std::chrono::hours longestStoreWait{24};

}  // namespace

Engine::Claimed Engine::acquireFree(std::span<const std::string_view> keys, const LockTerms& terms,
                                    Instant until) {
  refuseInherited();
  Claimed claimed;
  // Shares are claimed one by one.
  if (batchable_ == nullptr || terms.share || stopped()) return claimed;
  Call call{terms, terms.stop, now(), until, saturated(forever), 0};
  const auto leases = enterFree(keys, terms);
  if (leases.size() < 2) return claimed;  // one key is claimed in the usual way
  std::list<ClaimedToken> tokens;
  for (const auto& lease : leases) tokens.emplace_back(*this, *lease).replace();
  claimed.locks.reserve(leases.size());
  std::vector<AcquireResult> results;
  try {
    keeper_->start();
    results = claimInOrder(leases, call);
  } catch (const Error& error) {
    if (worthRetrying(error.code()) && now() < until) return claimed;
    tellEnd(EventKind::gaveUp, leases.front()->key(), call, &error);
    throw;
  }
  if (results.empty()) return claimed;  // a driver that breaks its contract
  claimed.nextIsBusy = std::holds_alternative<Busy>(results.back());
  const std::size_t granted = results.size() - (claimed.nextIsBusy ? 1 : 0);
  std::size_t taken = 0;
  const auto withdrawRest = [&] {
    claimed.nextIsBusy = false;
    for (; taken < granted; ++taken) withdraw(*leases[taken]);
  };
  try {
    while (taken < granted && accept(*leases[taken], std::get<Granted>(results[taken]))) {
      const auto& lease = leases[taken++];
      lease->turn.attemptEnded(LocalQueue::Answer::taken);
      keep(*lease);
      claimed.locks.push_back(held(lease, call.began, call.attempts));
    }
  } catch (...) {
    withdrawRest();
    throw;
  }
  if (taken < granted) withdrawRest();  // granted too late to be used
  if (claimed.nextIsBusy && now() >= until) tellBusy(leases[granted]->key(), call);
  return claimed;
}

// Leases, each with its turn, for the first of `keys` that nobody of this process is in line for.
std::vector<std::shared_ptr<Lease>> Engine::enterFree(std::span<const std::string_view> keys,
                                                      const LockTerms& terms) {
  std::vector<std::shared_ptr<Lease>> leases;
  leases.reserve(keys.size());
  for (const std::string_view key : keys) {
    std::string full = fullKey(key);
    const LocalQueue::Hash hash = LocalQueue::hashOf(full);
    auto lease = std::make_shared<Lease>(context_, std::move(full), hash, terms);
    if (!queue_.tryEnter(*lease)) break;
    leases.push_back(std::move(lease));
  }
  return leases;
}

// If the outcome of the request is unknown, it is sent again once. If that fails as well, the claims are
// withdrawn, since they may have been granted.
std::vector<AcquireResult> Engine::claimInOrder(std::span<const std::shared_ptr<Lease>> leases, Call& call) {
  std::vector<AcquireRequest> requests;
  requests.reserve(leases.size());
  const Instant deadline = callEnd(now());
  for (const auto& lease : leases) {
    requests.push_back({.claim = lease->claim(),
                        .ttl = lease->ttl,
                        .deadline = deadline,
                        .waits = call.waitUntil > call.began});
  }
  const auto withdrawAll = [&] {
    for (const auto& lease : leases) withdraw(*lease);
  };
  for (;;) {
    const Instant began = now();
    try {
      ++call.attempts;
      return batchable_->acquireInOrder(requests);
    } catch (const Error& error) {
      tellFailure(*leases.front(), began, error);
      const bool again = requests.front().resend;
      if (perhapsApplied(error.code()) && !isWithdrawn(error) && !again && now() < deadline) {
        for (AcquireRequest& each : requests) each.resend = true;
        continue;
      }
      if (again || error.code() != ErrorCode::storeUnavailable) withdrawAll();
      throw;
    } catch (...) {
      withdrawAll();
      throw;
    }
  }
}

bool Engine::claim(Lease& lease, Call& call, bool atOnce) {
  Attempt last{.began = atOnce ? call.began : now(),
               .isFirstInLine = atOnce,
               .unansweredSince = lease.turn.unansweredSince()};
  // A caller of this process has waited in the store's queue a moment ago: the key is probably busy still.
  const bool waitFirst = waitable_ != nullptr && !call.terms.share && last.began < call.waitUntil &&
                         !call.stop.stop_requested() && queue_.hasLatelyWaited(call.keyHash, last.began);
  if (waitFirst) lease.turn.attemptEnded(LocalQueue::Answer::taken);
  ClaimedToken token(*this, lease);
  ClaimSteps steps(token, waitable_ != nullptr, waitFirst);
  Backoff backoff(options_.backoffInitial, options_.backoffCap);
  while (true) {
    switch (steps.next()) {
      case ClaimSteps::Step::ask:
      case ClaimSteps::Step::wait:
        tryOnce(lease, call, steps, last);
        last.began = now();
        break;
      case ClaimSteps::Step::pause:
        pauseBetween(lease, call, steps, backoff, last);
        last.began = now();
        break;
      case ClaimSteps::Step::granted:
        keep(lease);
        return true;
      case ClaimSteps::Step::ended:
        if (last.failure && !call.stop.stop_requested()) std::rethrow_exception(last.failure);
        return false;
    }
  }
}

// Makes one call of the driver, and tells `steps` its outcome.
void Engine::tryOnce(Lease& lease, Call& call, ClaimSteps& steps, Attempt& attempt) {
  const bool waits = steps.next() == ClaimSteps::Step::wait;
  attempt.retryAfter.reset();
  try {
    keeper_->start();
    ++call.attempts;
    const bool isFollowed = !std::exchange(attempt.isFirstInLine, false) && lease.turn.isFollowed();
    const AcquireRequest request{
        .claim = lease.claim(),
        .ttl = lease.ttl,
        .deadline = std::min(attempt.began + options_.operationTimeout, latestAnswer(call, attempt)),
        .resend = steps.isResend(),
        .localHolders = isFollowed ? mostTurns : std::uint8_t{1},
        .ahead = call.terms.ahead,
        .waits = call.waitUntil > call.began};
    const auto result = waits ? acquireWaiting(request, call) : driver_->acquire(request);
    if (const auto* granted = std::get_if<Granted>(&result)) {
      takeGrant(lease, call, steps, *granted, attempt);
      if (waits && steps.next() == ClaimSteps::Step::granted)
        queue_.noteStoreWait(call.keyHash, lease.acquiredAt);
      return;
    }
    // Now, since a wait in the store tells nothing until it ends.
    tellLine(lease, LocalQueue::Answer::taken, attempt);
    attempt.failure = nullptr;
    // A store may name a time that nanoseconds do not hold.
    const auto& busy = std::get<Busy>(result);
    if (busy.retryAfter && *busy.retryAfter < options_.backoffCap)
      attempt.retryAfter =
          std::max(*busy.retryAfter, std::chrono::milliseconds{0}) + std::chrono::milliseconds{1};
    steps.busy(timeLeft(call, attempt));
  } catch (const Error& error) {
    // Any other error concerns this key or this caller alone, not those in line.
    if (worthRetrying(error.code())) tellLine(lease, LocalQueue::Answer::none, attempt);
    tellFailure(lease, attempt.began, error);
    attempt.failure = std::current_exception();
    steps.failed(failureOf(error), timeLeft(call, attempt));
    if (steps.next() == ClaimSteps::Step::ask) lease.turn.attemptBegins();
  } catch (const std::invalid_argument&) {
    steps.failed(ClaimSteps::Failure::refused, {});
    throw;
  } catch (...) {
    steps.failed(ClaimSteps::Failure::broken, {});  // a driver that breaks its contract
    throw;
  }
}

void Engine::takeGrant(Lease& lease, const Call& call, ClaimSteps& steps, const Granted& granted,
                       Attempt& attempt) {
  if (accept(lease, granted)) {
    tellLine(lease, LocalQueue::Answer::taken, attempt);
    return steps.granted();
  }
  tellLine(lease, LocalQueue::Answer::none, attempt);
  attempt.failure = std::make_exception_ptr(
      OutcomeUnknown("the lock was granted too late or too briefly to be used, and is given back"));
  steps.grantedTooLate(timeLeft(call, attempt));
}

// Tells those in line what has come of an attempt.
void Engine::tellLine(Lease& lease, LocalQueue::Answer answer, Attempt& attempt) {
  if (answer != LocalQueue::Answer::none) {
    attempt.unansweredSince = Instant::max();
  } else if (attempt.unansweredSince == Instant::max()) {
    attempt.unansweredSince = now();
  }
  lease.turn.attemptEnded(answer, attempt.unansweredSince);
}

void Engine::pauseBetween(Lease& lease, const Call& call, ClaimSteps& steps, Backoff& backoff,
                          const Attempt& last) {
  const Environment& environment = options_.environment;
  auto pause = backoff.next(*environment.random);
  if (last.retryAfter) pause = std::min<std::chrono::nanoseconds>(pause, *last.retryAfter);
  const Instant until = std::min({now() + pause, call.waitUntil, outageEnd(call, last)});
  if (!pauseUntil(*environment.clock, until, call.stop)) return steps.stop();
  steps.resume();
  lease.turn.attemptBegins();
}

ClaimSteps::Time Engine::timeLeft(const Call& call, const Attempt& last) const {
  if (call.stop.stop_requested()) return {};
  const Instant at = now();
  return {.forMore = at < std::min(call.waitUntil, outageEnd(call, last)),
          .forDoubt = at < latestAnswer(call, last)};
}

// When the call gives up, unless the store answers before.
Instant Engine::outageEnd(const Call& call, const Attempt& last) const {
  return LocalQueue::endOfOutage(last.unansweredSince, call.began, call.longestOutage);
}

// When no attempt may go on any more. If an attempt that began before the call had to give up ends in doubt,
// one operationTimeout is left to clear that up.
Instant Engine::latestAnswer(const Call& call, const Attempt& last) const {
  return std::min(latestEnd(call), saturatingAdd(outageEnd(call, last), options_.operationTimeout));
}

AcquireResult Engine::acquireWaiting(const AcquireRequest& request, const Call& call) {
  const auto waitFor = std::min<std::chrono::nanoseconds>(call.waitUntil - now(), longestStoreWait);
  return waitable_->acquireWaiting(request, std::max(waitFor, waitFor.zero()), call.stop);
}

bool Engine::accept(Lease& lease, const Granted& granted) {
  lease.granted(granted, now());
  return lease.acquiredAt < lease.validUntil.load(std::memory_order_relaxed);
}

}  // namespace lockkeeper::detail
