#include "lock/engine.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/either_stop.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/internal/backoff.h"

namespace lockkeeper::detail {

namespace {

bool perhapsApplied(ErrorCode code) {
  return code == ErrorCode::outcomeUnknown || code == ErrorCode::protocol;
}

bool worthRetrying(ErrorCode code) {
  return code == ErrorCode::outcomeUnknown || code == ErrorCode::storeUnavailable;
}

// Of one grant of the store. Other processes, as far as the store does not tell of them, wait so long; and
// what is not used of the fences is lost, which must not make them run ahead of a clock in microseconds.
constexpr std::uint32_t mostTurns = 64;

// The longest that a store is asked to let one claim wait; core asks again then.
constexpr std::chrono::hours longestStoreWait{24};

std::shared_ptr<LockDriver> checked(std::shared_ptr<LockDriver> driver) {
  if (driver == nullptr) throw std::invalid_argument("a LockManager needs a driver");
  return driver;
}

}  // namespace

struct Engine::Call {
  const LockTerms& terms;
  const std::stop_token& stop;
  const Instant began;
  const Instant waitUntil;
  const std::size_t keyHash;
  int attempts = 0;
};

// `call` ends by then, give or take one I/O timeout.
Instant Engine::latestEnd(const Call& call) const {
  return saturatingAdd(call.waitUntil, options_.operationTimeout);
}

Engine::Engine(std::shared_ptr<LockDriver> driver, ManagerOptions options)
    : options_(completed(std::move(options))),
      driver_(checked(std::move(driver))),
      waitable_(capability<Waitable>(*driver_)),
      reporting_(capability<WaiterReporting>(*driver_)),
      permits_(capability<Permits>(*driver_)),
      batchable_(capability<Batchable>(*driver_)),
      store_(driver_->name()),
      queue_(options_.environment.clock),
      keeper_(std::make_shared<LeaseKeeper>(driver_, options_.environment, options_.owner,
                                            options_.operationTimeout, options_.backoffCap)) {}

Engine::~Engine() {
  if (forkGuard_.inherited()) {
    // The threads are not here, the mutexes may be held by them for ever, the sockets are the parent's: let
    // go of all of it without touching it.
    new (std::nothrow) auto(keeper_);
    new (std::nothrow) auto(driver_);
    return;
  }
  keeper_->shutDown(Instant::min());
}

void Engine::leave(std::shared_ptr<Engine>&& engine, Instant until) noexcept {
  const auto last = std::move(engine);
  if (last.use_count() == 1 && !last->forkGuard_.inherited()) last->keeper_->shutDown(until);
}

void Engine::refuseInherited() const {
  if (forkGuard_.inherited()) {
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

std::optional<Lock> Engine::acquire(std::string_view key, const LockTerms& terms) {
  refuseInherited();
  if (terms.share) (void)permits();
  std::string full = fullKey(key);
  const std::size_t prefix = full.size() - key.size();
  keeper_->start();

  const Instant began = now();
  const EitherStop stop(terms.stop, stop_.get_token());
  Call call{terms, stop.token(), began,
            terms.waitFor == forever ? Instant::max() : saturatingAdd(began, terms.waitFor),
            LocalQueue::hashOf(full)};
  // Most of those who do not wait need no lease. Shares are in no line of this process: several may have
  // theirs at once, so that the store alone keeps their order.
  if (const auto known =
          terms.share ? std::nullopt : queue_.answerAtOnce(full, call.keyHash, call.waitUntil)) {
    endWithoutTurn(full, call, *known);
    return std::nullopt;
  }
  auto lease = std::make_shared<Lease>(*this, std::move(full), prefix, terms);
  const LocalQueue::Entered entered =
      terms.share && !stopped() ? LocalQueue::Entered{.turn = true} : enter(lease, call);
  if (!entered.turn && !entered.handedOver) {
    endWithoutTurn(lease->key, call, entered.otherwise);
    return std::nullopt;
  }
  try {
    if (entered.handedOver || claim(*lease, call)) {
      if (!entered.handedOver) keep(*lease);
      return held(std::move(lease), began, call.attempts);
    }
  } catch (const Error& error) {
    lease->turn.leave();
    tellEnd(EventKind::gaveUp, lease->key, call, &error);
    throw;
  }
  lease->turn.leave();
  tellBusy(lease->key, call);
  return std::nullopt;
}

// Tells of the lock, which is kept already.
Lock Engine::held(std::shared_ptr<Lease> lease, Instant began, int attempts) {
  options_.environment.tell({.kind = EventKind::acquired,
                             .key = lease->key,
                             .store = store_,
                             .began = began,
                             .ended = lease->acquiredAt,
                             .attempts = attempts,
                             .fence = lease->fence});
  keeper_->announced(*lease);
  return Lock(shared_from_this(), std::move(lease));
}

Engine::Claimed Engine::acquireFree(std::span<const std::string_view> keys, const LockTerms& terms,
                                    Instant until) {
  refuseInherited();
  Claimed claimed;
  // Shares are claimed one by one.
  if (batchable_ == nullptr || terms.share || stopped()) return claimed;
  keeper_->start();
  Call call{terms, terms.stop, now(), until, 0};
  const auto leases = enterFree(keys, terms);
  if (leases.size() < 2) return claimed;  // one key is claimed in the usual way
  claimed.locks.reserve(leases.size());
  std::vector<AcquireResult> results;
  try {
    results = claimInOrder(leases, call);
  } catch (const Error& error) {
    if (worthRetrying(error.code()) && now() < until) return claimed;
    tellEnd(EventKind::gaveUp, leases.front()->key, call, &error);
    throw;
  }
  if (results.empty()) return claimed;  // a driver that breaks its contract
  claimed.nextIsBusy = std::holds_alternative<Busy>(results.back());
  const std::size_t granted = results.size() - (claimed.nextIsBusy ? 1 : 0);
  std::size_t taken = 0;
  const auto giveBackRest = [&] {
    claimed.nextIsBusy = false;
    for (; taken < granted; ++taken) giveBack(*leases[taken]);
  };
  try {
    while (taken < granted && accept(*leases[taken], std::get<Granted>(results[taken]))) {
      const auto& lease = leases[taken++];
      lease->turn.tell(LocalQueue::Answer::taken);
      keep(*lease);
      claimed.locks.push_back(held(lease, call.began, call.attempts));
    }
  } catch (...) {
    giveBackRest();
    throw;
  }
  if (taken < granted) giveBackRest();  // granted too late to be used
  if (claimed.nextIsBusy && now() >= until) tellBusy(leases[granted]->key, call);
  return claimed;
}

// Leases for the first of `keys`, as far as nobody of this process is in line for them. Each has its turn and
// a token.
std::vector<std::shared_ptr<Lease>> Engine::enterFree(std::span<const std::string_view> keys,
                                                      const LockTerms& terms) {
  std::vector<std::shared_ptr<Lease>> leases;
  leases.reserve(keys.size());
  for (const std::string_view key : keys) {
    std::string full = fullKey(key);
    const std::size_t prefix = full.size() - key.size();
    auto lease = std::make_shared<Lease>(*this, std::move(full), prefix, terms);
    if (!queue_.tryEnter(*lease, LocalQueue::hashOf(lease->key))) break;
    lease->token = Token::generate(*options_.environment.random);
    leases.push_back(std::move(lease));
  }
  return leases;
}

// The same claims are sent again once when the outcome was not seen. What may have been granted when that
// fails, too, is given back.
std::vector<AcquireResult> Engine::claimInOrder(std::span<const std::shared_ptr<Lease>> leases, Call& call) {
  std::vector<AcquireRequest> requests;
  requests.reserve(leases.size());
  const Instant deadline = callEnd(now());
  for (const auto& lease : leases) {
    requests.push_back({.claim = lease->claim(), .ttl = lease->ttlMilliseconds(), .deadline = deadline});
  }
  const auto giveAllBack = [&] {
    for (const auto& lease : leases) giveBack(*lease);
  };
  for (;;) {
    const Instant began = now();
    try {
      ++call.attempts;
      return batchable_->acquireInOrder(requests);
    } catch (const Error& error) {
      tellFailure(*leases.front(), began, error);
      const bool again = requests.front().resend;
      if (perhapsApplied(error.code()) && !again && now() < deadline) {
        for (AcquireRequest& each : requests) each.resend = true;
        continue;
      }
      if (again || error.code() != ErrorCode::storeUnavailable) giveAllBack();
      throw;
    } catch (...) {
      giveAllBack();
      throw;
    }
  }
}

// Of a call that was never the first in line: it ends with what the first one knows.
void Engine::endWithoutTurn(std::string_view key, const Call& call, LocalQueue::Answer known) const {
  if (known == LocalQueue::Answer::none && !call.stop.stop_requested()) {
    const StoreUnavailable error(
        "the store does not answer the caller of this process that is ahead for the key");
    tellEnd(EventKind::gaveUp, key, call, &error);
    throw error;
  }
  tellBusy(key, call);
}

// Gets in line for the turn. A lease that is handed over and cannot be used is replaced.
LocalQueue::Entered Engine::enter(std::shared_ptr<Lease>& lease, Call& call) {
  while (!stopped()) {
    const auto entered = queue_.enter(*lease, call.keyHash, call.waitUntil, latestEnd(call), call.stop);
    if (!entered.handedOver || startsWell(*lease, call)) return entered;
    // One that was lost meanwhile has lost its turn too.
    const bool hasTurn = keeper_->remove(*lease);
    giveBack(*lease);
    const auto former =
        std::exchange(lease, std::make_shared<Lease>(*this, lease->key, lease->namespaceBytes, call.terms));
    if (!hasTurn) continue;
    former->turn.moveTo(lease->turn, lease->key);
    return {.turn = true};
  }
  return {};
}

// Whether a lease that was handed over is good for a new holder: it has at least half of its length left, as
// far as the store can give it that, and is in no doubt.
bool Engine::startsWell(Lease& lease, Call& call) {
  while (std::exchange(lease.needsRenewal, false) || lease.suspect()) {
    if (!renewFirst(lease, call)) return false;
  }
  return lease.valid();
}

bool Engine::renewFirst(Lease& lease, Call& call) {
  ++call.attempts;
  const Instant started = now();
  Renewal renewal{.claim = lease.claim(), .ttl = lease.ttlMilliseconds()};
  const Instant end = std::min(latestEnd(call), lease.validUntil.load(std::memory_order_relaxed));
  try {
    driver_->renew({&renewal, 1}, std::min(started + options_.operationTimeout, end));
  } catch (...) {
    // A driver that breaks its contract: the outcome that it did not write is unknown.
  }
  return keeper_->renewed(lease, renewal, started);
}

void Engine::keep(Lease& lease) {
  try {
    keeper_->add(lease);
  } catch (...) {
    giveBack(lease);  // nobody would renew it
    throw;
  }
}

void Engine::tellBusy(std::string_view key, const Call& call) const {
  tellEnd(call.stop.stop_requested() ? EventKind::gaveUp : EventKind::timedOut, key, call);
}

void Engine::tellEnd(EventKind kind, std::string_view key, const Call& call, const Error* error) const {
  if (!options_.environment.listener) return;
  Event event{.kind = kind,
              .key = key,
              .store = store_,
              .began = call.began,
              .ended = now(),
              .attempts = call.attempts};
  if (kind == EventKind::gaveUp) event.error = error != nullptr ? error->code() : ErrorCode::cancelled;
  if (error != nullptr) event.text = error->what();
  options_.environment.tell(event);
}

bool Engine::claim(Lease& lease, Call& call) {
  const Environment& environment = options_.environment;
  lease.token = Token::generate(*environment.random);
  Backoff backoff(options_.backoffInitial, options_.backoffCap);
  const Instant latest = latestEnd(call);
  std::exception_ptr failure;
  bool sent = false;    // an earlier attempt with this token may have been applied
  bool queued = false;  // an earlier wait with it may have left it in the store's queue
  // The store lets claims wait for the key, and has just said that it is busy; or did so a moment ago.
  Instant began = now();
  bool waits = waitable_ != nullptr && !call.terms.share && began < call.waitUntil &&
               !call.stop.stop_requested() && queue_.hasLatelyWaited(call.keyHash, began);
  if (waits) lease.turn.tell(LocalQueue::Answer::taken);

  for (;; began = now()) {
    std::optional<std::chrono::milliseconds> retryAfter;
    try {
      const Instant deadline = std::min(began + options_.operationTimeout, latest);
      ++call.attempts;
      const AcquireRequest request{lease.claim(),
                                   lease.ttlMilliseconds(),
                                   deadline,
                                   sent || queued,
                                   lease.turn.isFollowed() ? mostTurns : 1,
                                   call.terms.ahead};
      const auto result = waits ? acquireWaiting(request, call) : driver_->acquire(request);
      sent = false;
      if (const auto* granted = std::get_if<Granted>(&result)) {
        if (accept(lease, *granted)) {
          lease.turn.tell(LocalQueue::Answer::taken);
          if (waits) queue_.noteStoreWait(call.keyHash, lease.acquiredAt);
          return true;
        }
        lease.turn.tell(LocalQueue::Answer::none);
        waits = false;
        queued = false;
        giveBack(lease);
        failure = std::make_exception_ptr(
            OutcomeUnknown("the lock was granted too late or too briefly to be used, and is given back"));
      } else {
        lease.turn.tell(LocalQueue::Answer::taken);
        failure = nullptr;
        // Asked first, and told to those in line: a wait in the store tells nothing until it ends. One that
        // ends too soon has found no place in the store's queue.
        const bool hasWaited = waits;
        if (hasWaited) queued = false;
        waits = waitable_ != nullptr && !hasWaited && now() < call.waitUntil && !call.stop.stop_requested();
        if (waits) {
          // With its old token it finds the place that it has.
          if (!queued) lease.token = Token::generate(*environment.random);
          continue;
        }
        // A store may name a time that nanoseconds do not hold.
        const auto& busy = std::get<Busy>(result);
        if (busy.retryAfter && *busy.retryAfter < options_.backoffCap) {
          retryAfter =
              std::max(*busy.retryAfter, std::chrono::milliseconds{0}) + std::chrono::milliseconds{1};
        }
      }
    } catch (const Error& error) {
      // Another error is this key's own, or this caller's.
      if (worthRetrying(error.code())) lease.turn.tell(LocalQueue::Answer::none);
      tellFailure(lease, began, error);
      failure = std::current_exception();
      const bool doubt = perhapsApplied(error.code());
      const bool firstDoubt = doubt && !sent && !queued;
      sent = sent || doubt;
      queued = queued || (doubt && waits);
      waits = false;
      if (!worthRetrying(error.code())) break;
      // Most doubts come from a connection that died: the same token, sent again, tells at once.
      if (firstDoubt && now() < latest && !call.stop.stop_requested()) {
        lease.turn.ask();
        continue;
      }
    } catch (const std::invalid_argument&) {
      if (sent || queued) giveBack(lease);
      throw;
    } catch (...) {
      giveBack(lease);  // a driver that breaks its contract: the claim was perhaps applied
      throw;
    }
    if (now() >= call.waitUntil || call.stop.stop_requested()) break;
    auto pause = backoff.next(*environment.random);
    if (retryAfter) pause = std::min<std::chrono::nanoseconds>(pause, *retryAfter);
    if (!pauseUntil(*environment.clock, std::min(now() + pause, call.waitUntil), call.stop)) break;
    // Where nothing is in doubt, what is left of this attempt must not be taken for the next one's.
    if (!sent && !queued) lease.token = Token::generate(*environment.random);
    lease.turn.ask();
  }
  if (sent || queued) giveBack(lease);
  if (failure && !call.stop.stop_requested()) std::rethrow_exception(failure);
  return false;
}

AcquireResult Engine::acquireWaiting(const AcquireRequest& request, const Call& call) {
  const auto waitFor = std::min<std::chrono::nanoseconds>(call.waitUntil - now(), longestStoreWait);
  return waitable_->acquireWaiting(request, std::max(waitFor, waitFor.zero()), call.stop);
}

bool Engine::accept(Lease& lease, const Granted& granted) {
  lease.granted(granted, now());
  return lease.acquiredAt < lease.validUntil.load(std::memory_order_relaxed);
}

void Engine::stop() noexcept {
  // In a forked child, those who wait are not here, and what would wake them is the parent's.
  if (!forkGuard_.inherited()) stop_.request_stop();
}

void Engine::giveBack(const Lease& lease) noexcept {
  keeper_->abandon(lease.claim(), saturatingAdd(now(), std::max(lease.ttl, lease.length)));
}

void Engine::tellFailure(const Lease& lease, Instant began, const Error& error) const {
  options_.environment.tell({.kind = EventKind::attemptFailed,
                             .key = lease.key,
                             .store = store_,
                             .began = began,
                             .ended = now(),
                             .error = error.code(),
                             .text = error.what()});
}

void Engine::renew(Lease& lease) {
  refuseInherited();
  if (!lease.valid()) throw LockLost("the lock is lost: it cannot be renewed");
  const Instant started = now();
  Renewal renewal{.claim = lease.claim(), .ttl = lease.ttlMilliseconds()};
  const Instant end = lease.validUntil.load(std::memory_order_relaxed);
  driver_->renew({&renewal, 1}, std::min(started + options_.operationTimeout, end));
  if (keeper_->renewed(lease, renewal, started)) return;
  if (!lease.alive()) throw LockLost(std::string("the lock is lost: ") + toString(lease.lossReason));
  const std::string cause = renewal.cause.empty() ? "" : ": " + renewal.cause;
  if (renewal.outcome == RenewOutcome::unavailable) {
    throw StoreUnavailable("the lock was not renewed, its old lease runs on" + cause);
  }
  throw OutcomeUnknown("the lock was perhaps renewed, its old lease runs on at least" + cause);
}

struct Engine::Released {
  ReleaseResult result;
  int attempts = 1;
  std::optional<ErrorCode> error{};  // why the store has not confirmed it
  std::string text{};                // the same in words, unless an event has told them
};

ReleaseResult Engine::release(Lease& lease, Instant began, Instant until, bool awaited) noexcept {
  if (forkGuard_.inherited()) return ReleaseResult::notHeld;
  if (handOver(lease, began)) return ReleaseResult::released;
  const bool wasAlive = keeper_->remove(lease);
  if (!wasAlive && lease.lossReason == LossReason::ownershipUncertain) return ReleaseResult::notOwner;
  const bool wasValid = wasAlive && began < lease.validUntil.load(std::memory_order_relaxed);
  lease.last = {began, wasAlive, wasValid};
  if (!awaited && keeper_->post(lease)) {
    // The store gets it before what the next caller of this process asks.
    lease.turn.leave();
    return ReleaseResult::unknown;
  }
  const Released released = sendRelease(lease, began, until, wasValid);
  if (released.result == ReleaseResult::released) keeper_->freed(lease);
  if (wasAlive) endRelease(lease, released, released.result == ReleaseResult::notOwner && wasValid);
  return released.result;
}

// To the next caller in line, without the store.
bool Engine::handOver(Lease& lease, Instant began) noexcept {
  if (lease.turnsLeft == 0 || began >= lease.handOnUntil) return false;
  if (reporting_ != nullptr && reporting_->waitersReportedSince(lease.grantAskedAt)) return false;
  std::condition_variable* const next = keeper_->handOver(lease, began);
  if (next == nullptr) return false;
  // Outside the mutexes, or it would be woken up to wait for them.
  next->notify_one();
  endRelease(lease, {.result = ReleaseResult::released, .attempts = 0}, false);
  return true;
}

ReleaseResult Engine::releaseHeldFor(Lease& lease, Instant began,
                                     std::chrono::milliseconds atLeast) noexcept {
  if (forkGuard_.inherited()) return ReleaseResult::notHeld;
  const auto rest =
      std::chrono::ceil<std::chrono::milliseconds>(saturatingAdd(lease.acquiredAt, atLeast) - began);
  if (rest <= rest.zero()) return release(lease, began, callEnd(began));
  // Lost: the lease ends by itself. To ask for its release, as usual, might free the key too early.
  if (!keeper_->remove(lease)) return ReleaseResult::notOwner;
  const Released released =
      sendLastRenewal(lease, std::clamp<std::chrono::milliseconds>(rest, shortestTtl, longestTtl));
  endRelease(lease, released, released.result == ReleaseResult::notOwner);
  return released.result;
}

Engine::Released Engine::sendLastRenewal(Lease& lease, std::chrono::milliseconds rest) {
  Renewal renewal{.claim = lease.claim(), .ttl = rest};
  try {
    driver_->renew({&renewal, 1}, callEnd(now()));
  } catch (...) {
    // A driver that breaks its contract: the outcome that it did not write is unknown.
  }
  switch (renewal.outcome) {
    case RenewOutcome::renewed:
      return {.result = ReleaseResult::released};
    case RenewOutcome::notOwner:
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
  options_.environment.tell({.kind = foundLost ? EventKind::lost : EventKind::released,
                             .key = lease.key,
                             .store = store_,
                             .began = lease.acquiredAt,
                             .ended = now(),
                             .attempts = released.attempts,
                             .error = released.error,
                             .text = released.text,
                             .fence = lease.fence,
                             .loss = lease.lossReason});
}

Engine::Released Engine::sendRelease(Lease& lease, Instant began, Instant until, bool wasValid) {
  if (began >= until) {
    giveBack(lease);
    return {ReleaseResult::unavailable, 0, ErrorCode::storeUnavailable};
  }
  for (int attempts = 1;; ++attempts) {
    const bool again = attempts > 1;
    try {
      const ReleaseOutcome outcome = driver_->release(lease.claim(), until);
      // A lease that ran until it was released can only have been ended by the first, unanswered request.
      if (outcome == ReleaseOutcome::released || (again && wasValid))
        return {ReleaseResult::released, attempts};
      if (wasValid) {
        lease.lossReason =
            outcome == ReleaseOutcome::notOwner ? LossReason::notOwner : LossReason::ownershipUncertain;
      }
      return {ReleaseResult::notOwner, attempts};
    } catch (const Error& error) {
      tellFailure(lease, began, error);
      const bool doubt = perhapsApplied(error.code());
      if (doubt && !again && now() < until) continue;
      giveBack(lease);
      return {doubt || again ? ReleaseResult::unknown : ReleaseResult::unavailable, attempts, error.code()};
    } catch (...) {
      // A driver that breaks its contract; the lease ends by itself.
      return {ReleaseResult::unknown, attempts, ErrorCode::outcomeUnknown};
    }
  }
}

std::optional<Holder> Engine::holder(std::string_view key) {
  refuseInherited();
  return driver_->holder(fullKey(key), callEnd(now()));
}

std::optional<OwnerToken> Engine::ownerToken(const Lock& held) {
  refuseInherited();
  if (held.engine_.get() != this || !held.valid()) return std::nullopt;
  const Lease& lease = *held.lease_;
  std::vector<Holder> holders;
  if (lease.share) {
    holders = permits().shareHolders(lease.key, callEnd(now()));
  } else if (auto holder = driver_->holder(lease.key, callEnd(now()))) {
    holders.push_back(std::move(*holder));
  }
  // A fence that is shown may be that of a later one of the turns that were granted.
  std::erase_if(holders, [&](const Holder& each) {
    const bool named = !each.grantId.empty() || each.fence;
    const bool early = each.fence && lease.fence && *each.fence < *lease.fence;
    return !named || early || each.owner != lease.owner || each.share != lease.share;
  });
  if (holders.size() != 1) return std::nullopt;
  return OwnerToken{.key = lease.key, .grant = std::move(holders.front()), .fence = lease.fence};
}

Permits& Engine::permits() const {
  if (permits_ != nullptr) return *permits_;
  const std::string_view reason = driver_->whyNot(typeid(Permits));
  throw ConfigError("the store " + store_ + " has no shared locks and no semaphores" +
                    (reason.empty() ? "" : ": " + std::string(reason)));
}

std::vector<Holder> Engine::shareHolders(std::string_view key) {
  refuseInherited();
  return permits().shareHolders(fullKey(key), callEnd(now()));
}

bool Engine::resize(std::string_view key, std::uint32_t limit) {
  refuseInherited();
  checkShare({.weight = 1, .limit = limit});
  return permits().resize(fullKey(key), limit, callEnd(now()));
}

}  // namespace lockkeeper::detail
