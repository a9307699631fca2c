#include "lock/engine.h"

#include <algorithm>
#include <array>
#include <exception>
#include <list>
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

// Then the token serves no other claim.
bool isWithdrawn(const Error& error) { return dynamic_cast<const WithdrawalUnknown*>(&error) != nullptr; }

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

// Of one grant of the store. Other processes, as far as the store does not tell of them, wait so long; and
// what is not used of the fences is lost, which must not make them run ahead of a clock in microseconds.
constexpr std::uint8_t mostTurns = 64;

// The longest that a store is asked to let one claim wait; core asks again then.
constexpr std::chrono::hours longestStoreWait{24};

// The worst one comes first.
constexpr std::array worstFirst{ReleaseResult::notOwner, ReleaseResult::unknown, ReleaseResult::unavailable,
                                ReleaseResult::released, ReleaseResult::notHeld};

ReleaseResult worse(ReleaseResult a, ReleaseResult b) {
  return *std::min(std::ranges::find(worstFirst, a), std::ranges::find(worstFirst, b));
}

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
  const std::chrono::nanoseconds longestOutage;  // of the store, that the call waits for
  const LocalQueue::Hash keyHash;
  int attempts = 0;
};

/// The token of a lease that is being claimed: the only place where it changes.
class Engine::ClaimedToken final : public ClaimSteps::Tokens {
 public:
  ClaimedToken(Engine& engine, Lease& lease) : engine_(engine), lease_(lease) {}
  ClaimedToken(const ClaimedToken&) = delete;
  ~ClaimedToken() override { engine_.keeper_->stopExpecting(lease_); }

  void replace() override {
    engine_.keeper_->expect(lease_, Token::generate(*engine_.options_.environment.random));
  }
  void withdraw() noexcept override { engine_.withdraw(lease_); }

 private:
  Engine& engine_;
  Lease& lease_;
};

/// What one attempt of a claim leaves for the next.
struct Engine::Attempt {
  Instant began;
  bool isFirstInLine;       // the call has just begun, and hardly anybody can have got in line behind it
  Instant unansweredSince;  // Instant::max() after an answer
  std::exception_ptr failure{};
  std::optional<std::chrono::milliseconds> retryAfter{};
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
      releasing_(capability<BatchReleasing>(*driver_)),
      store_(driver_->name()),
      queue_(options_.environment.clock),
      keeper_(std::make_shared<LeaseKeeper>(driver_, options_.environment, options_.owner,
                                            options_.operationTimeout, options_.backoffCap)),
      context_(std::make_shared<const LeaseContext>(LeaseContext{
          .keeper = keeper_,
          .clock = options_.environment.clock,
          .owner = options_.owner,
          .namespaceBytes = options_.keyNamespace.empty() ? 0 : options_.keyNamespace.size() + 1})) {}

Engine::~Engine() {
  if (forkGuard_.inherited()) {
    // The threads are not here, the mutexes may be held by them for ever, the sockets are the parent's: let
    // go of all of it without touching it.
    new (std::nothrow) auto(keeper_);
    new (std::nothrow) auto(driver_);
    return;
  }
  // Unless leave() has done so: of two who leave at the same time, neither is known to be the last.
  keeper_->shutDown(callEnd(now()));
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

  const Instant began = now();
  const EitherStop stop(terms.stop, stop_.get_token());
  Call call{terms,
            stop.token(),
            began,
            terms.waitFor == forever ? Instant::max() : saturatingAdd(began, terms.waitFor),
            saturated(terms.waitFor == forever ? options_.longestOutage : forever),
            LocalQueue::hashOf(full)};
  // Most of those who do not wait need no lease. Shares are in no line of this process: several may have
  // theirs at once, so that the store alone keeps their order.
  if (const auto known =
          terms.share ? std::nullopt : queue_.answerAtOnce(full, call.keyHash, call.waitUntil)) {
    endWithoutTurn(full, call, *known);
    return std::nullopt;
  }
  auto lease = std::make_shared<Lease>(context_, std::move(full), call.keyHash, terms);
  const LocalQueue::Entered entered =
      terms.share && !stopped() ? LocalQueue::Entered{.turn = true, .atOnce = true} : enter(lease, call);
  if (!entered.turn && !entered.handedOver) {
    endWithoutTurn(lease->key(), call, entered.otherwise);
    return std::nullopt;
  }
  try {
    if (entered.handedOver || claim(*lease, call, entered.atOnce))
      return held(std::move(lease), began, call.attempts);
  } catch (const Error& error) {
    lease->turn.leave();
    tellEnd(EventKind::gaveUp, lease->key(), call, &error);
    throw;
  }
  lease->turn.leave();
  tellBusy(lease->key(), call);
  return std::nullopt;
}

// Tells of the lock, which is kept already.
Lock Engine::held(std::shared_ptr<Lease> lease, Instant began, int attempts) {
  options_.environment.tell({.kind = EventKind::acquired,
                             .key = lease->key(),
                             .store = store_,
                             .began = began,
                             .ended = lease->acquiredAt,
                             .attempts = attempts,
                             .fence = lease->fence(),
                             .share = lease->sharing(),
                             .trace = lease->trace()});
  keeper_->announced(*lease);
  return Lock(shared_from_this(), std::move(lease));
}

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
    while (taken < granted && accept(*leases[taken], std::get<Granted>(results[taken]), 1)) {
      const auto& lease = leases[taken++];
      lease->turn.tell(LocalQueue::Answer::taken);
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

// Leases for the first of `keys`, as far as nobody of this process is in line for them. Each has its turn.
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

// The same claims are sent again once when the outcome was not seen. What may have been granted when that
// fails, too, is given back.
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

// Of a call that was never the first in line: it ends with what the first one knows.
void Engine::endWithoutTurn(std::string_view key, const Call& call, LocalQueue::Answer known) const {
  if (known == LocalQueue::Answer::none && !call.stop.stop_requested()) {
    const StoreUnavailable error(
        "another caller of this process has asked the store for the key and gets no answer");
    tellEnd(EventKind::gaveUp, key, call, &error);
    throw error;
  }
  tellBusy(key, call);
}

// Gets in line for the turn. A lease that is handed over and cannot be used is replaced.
LocalQueue::Entered Engine::enter(std::shared_ptr<Lease>& lease, Call& call) {
  while (!stopped()) {
    const auto entered = queue_.enter(*lease,
                                      {.until = call.waitUntil,
                                       .answerBy = latestEnd(call),
                                       .began = call.began,
                                       .longestOutage = call.longestOutage},
                                      call.stop);
    if (!entered.handedOver || startsWell(*lease, call)) return entered;
    // One that was lost meanwhile has lost its turn too.
    const bool hasTurn = keeper_->remove(*lease);
    withdraw(*lease);
    const auto former =
        std::exchange(lease, std::make_shared<Lease>(context_, lease->key(), call.keyHash, call.terms));
    if (!hasTurn) continue;
    former->turn.moveTo(lease->turn);
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
  Renewal renewal{.claim = lease.claim(), .ttl = lease.ttl};
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
    withdraw(lease);  // nobody would renew it
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
              .attempts = call.attempts,
              .share = call.terms.share};
  if (kind == EventKind::gaveUp) event.error = error != nullptr ? error->code() : ErrorCode::cancelled;
  if (error != nullptr) event.text = error->what();
  options_.environment.tell(event);
}

bool Engine::claim(Lease& lease, Call& call, bool atOnce) {
  Attempt last{.began = atOnce ? call.began : now(),
               .isFirstInLine = atOnce,
               .unansweredSince = lease.turn.unansweredSince()};
  // The store has said a moment ago that the key is busy, to a caller that has then waited in its queue.
  const bool waitFirst = waitable_ != nullptr && !call.terms.share && last.began < call.waitUntil &&
                         !call.stop.stop_requested() && queue_.hasLatelyWaited(call.keyHash, last.began);
  if (waitFirst) lease.turn.tell(LocalQueue::Answer::taken);
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

// One call of the driver; `steps` gets its outcome.
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
        .deadline = std::min(attempt.began + options_.operationTimeout, latestEnd(call)),
        .resend = steps.isResend(),
        .turns = isFollowed ? mostTurns : std::uint8_t{1},
        .ahead = call.terms.ahead,
        .waits = call.waitUntil > call.began};
    const auto result = waits ? acquireWaiting(request, call) : driver_->acquire(request);
    if (const auto* granted = std::get_if<Granted>(&result)) {
      takeGrant(lease, call, steps, *granted, request.turns, attempt);
      if (waits && steps.next() == ClaimSteps::Step::granted)
        queue_.noteStoreWait(call.keyHash, lease.acquiredAt);
      return;
    }
    // Before a wait in the store, which tells nothing until it ends.
    tellLine(lease, LocalQueue::Answer::taken, attempt);
    attempt.failure = nullptr;
    // A store may name a time that nanoseconds do not hold.
    const auto& busy = std::get<Busy>(result);
    if (busy.retryAfter && *busy.retryAfter < options_.backoffCap)
      attempt.retryAfter =
          std::max(*busy.retryAfter, std::chrono::milliseconds{0}) + std::chrono::milliseconds{1};
    steps.busy(timeLeft(call, attempt));
  } catch (const Error& error) {
    // Another error is this key's own, or this caller's.
    if (worthRetrying(error.code())) tellLine(lease, LocalQueue::Answer::none, attempt);
    tellFailure(lease, attempt.began, error);
    attempt.failure = std::current_exception();
    steps.failed(failureOf(error), timeLeft(call, attempt));
    if (steps.next() == ClaimSteps::Step::ask) lease.turn.ask();
  } catch (const std::invalid_argument&) {
    steps.failed(ClaimSteps::Failure::refused, {});
    throw;
  } catch (...) {
    steps.failed(ClaimSteps::Failure::broken, {});  // a driver that breaks its contract
    throw;
  }
}

void Engine::takeGrant(Lease& lease, const Call& call, ClaimSteps& steps, const Granted& granted,
                       std::uint32_t askedTurns, Attempt& attempt) {
  if (accept(lease, granted, askedTurns)) {
    tellLine(lease, LocalQueue::Answer::taken, attempt);
    return steps.granted();
  }
  tellLine(lease, LocalQueue::Answer::none, attempt);
  attempt.failure = std::make_exception_ptr(
      OutcomeUnknown("the lock was granted too late or too briefly to be used, and is given back"));
  steps.grantedTooLate(timeLeft(call, attempt));
}

// What an attempt has come to, for those in line behind it.
void Engine::tellLine(Lease& lease, LocalQueue::Answer answer, Attempt& attempt) {
  if (answer != LocalQueue::Answer::none) {
    attempt.unansweredSince = Instant::max();
  } else if (attempt.unansweredSince == Instant::max()) {
    attempt.unansweredSince = now();
  }
  lease.turn.tell(answer, attempt.unansweredSince);
}

void Engine::pauseBetween(Lease& lease, const Call& call, ClaimSteps& steps, Backoff& backoff,
                          const Attempt& last) {
  const Environment& environment = options_.environment;
  auto pause = backoff.next(*environment.random);
  if (last.retryAfter) pause = std::min<std::chrono::nanoseconds>(pause, *last.retryAfter);
  const Instant until = std::min({now() + pause, call.waitUntil, outageEnd(call, last)});
  if (!pauseUntil(*environment.clock, until, call.stop)) return steps.stop();
  steps.resume();
  lease.turn.ask();
}

ClaimSteps::Time Engine::timeLeft(const Call& call, const Attempt& last) const {
  if (call.stop.stop_requested()) return {};
  const Instant at = now();
  return {.forMore = at < std::min(call.waitUntil, outageEnd(call, last)), .forDoubt = at < latestEnd(call)};
}

// When the call gives up unless the store answers before.
Instant Engine::outageEnd(const Call& call, const Attempt& last) const {
  return LocalQueue::endOfOutage(last.unansweredSince, call.began, call.longestOutage);
}

AcquireResult Engine::acquireWaiting(const AcquireRequest& request, const Call& call) {
  const auto waitFor = std::min<std::chrono::nanoseconds>(call.waitUntil - now(), longestStoreWait);
  return waitable_->acquireWaiting(request, std::max(waitFor, waitFor.zero()), call.stop);
}

bool Engine::accept(Lease& lease, const Granted& granted, std::uint32_t askedTurns) {
  lease.granted(granted, std::min(granted.turns, askedTurns), now());
  return lease.acquiredAt < lease.validUntil.load(std::memory_order_relaxed);
}

void Engine::stop() noexcept {
  // In a forked child, those who wait are not here, and what would wake them is the parent's.
  if (!forkGuard_.inherited()) stop_.request_stop();
}

void Engine::withdraw(const Lease& lease) noexcept {
  keeper_->abandon(lease.claim(),
                   saturatingAdd(now(), std::max<std::chrono::nanoseconds>(lease.ttl, lease.length)));
}

void Engine::tellFailure(const Lease& lease, Instant began, const Error& error) const {
  options_.environment.tell({.kind = EventKind::attemptFailed,
                             .key = lease.key(),
                             .store = store_,
                             .began = began,
                             .ended = now(),
                             .error = error.code(),
                             .text = error.what(),
                             .trace = lease.trace()});
}

void Engine::renew(Lease& lease) {
  refuseInherited();
  if (!lease.valid()) throw LockLost("the lock is lost: it cannot be renewed");
  const Instant started = now();
  Renewal renewal{.claim = lease.claim(), .ttl = lease.ttl};
  const Instant end = lease.validUntil.load(std::memory_order_relaxed);
  driver_->renew({&renewal, 1}, std::min(started + options_.operationTimeout, end));
  if (keeper_->renewed(lease, renewal, started)) return;
  if (!lease.alive()) throw LockLost(std::string("the lock is lost: ") + toString(lease.lossReason));
  const std::string cause = renewal.cause.empty() ? "" : ": " + renewal.cause;
  if (renewal.outcome == RenewOutcome::unavailable) {
    throw StoreUnavailable("the lock was not renewed; its old lease continues" + cause);
  }
  throw OutcomeUnknown("the lock may have been renewed; at least its old lease continues" + cause);
}

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

// False, and nothing was done, when there is no memory for that.
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

// What comes before the store is asked. The result, when it need not be, or nobody waits for it.
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

// To the next caller in line, without the store.
bool Engine::handOver(Lease& lease, Instant began) noexcept {
  if (lease.turnsLeft == 0) return false;
  const auto stay = keeper_->stayOf(lease);
  if (!stay || began >= stay->until) return false;
  if (reporting_ != nullptr && reporting_->waitersReportedSince(stay->askedAt)) return false;
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
  const Instant end = std::min(saturatingAdd(lease.acquiredAt, atLeast), saturatingAdd(began, longestTtl));
  if (end <= began) return release(lease, began, callEnd(began));
  // Lost: the lease ends by itself. To ask for its release, as usual, might free the key too early.
  if (!keeper_->leaveToEnd(lease, end)) return ReleaseResult::notOwner;
  const Released released = sendLastRenewal(lease);
  endRelease(lease, released, released.result == ReleaseResult::notOwner);
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
                             .key = lease.key(),
                             .store = store_,
                             .began = lease.acquiredAt,
                             .ended = now(),
                             .attempts = released.attempts,
                             .error = released.error,
                             .text = released.text,
                             .fence = lease.fence(),
                             .share = lease.sharing(),
                             .loss = lease.lossReason,
                             .trace = lease.trace()});
}

// Writes how each has ended. The request is sent again once when its outcome was not seen.
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
        // A lease that ran until it was released can only have been ended by the first, unanswered request.
        const bool done = each.outcome == ReleaseOutcome::released || (again && each.wasValid);
        each.released = {done ? ReleaseResult::released : ReleaseResult::notOwner, attempts};
        if (done || !each.wasValid) continue;
        each.lease.lossReason =
            each.outcome == ReleaseOutcome::notOwner ? LossReason::notOwner : LossReason::ownershipUncertain;
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

std::optional<Holder> Engine::holder(std::string_view key) {
  refuseInherited();
  return driver_->holder(fullKey(key), callEnd(now()));
}

std::optional<OwnerToken> Engine::ownerToken(const Lock& held) {
  refuseInherited();
  if (held.engine_.get() != this || !held.valid()) return std::nullopt;
  const Lease& lease = *held.lease_;
  const Claim claim = lease.claim();
  const std::optional<Fence> fence = lease.fence();
  std::vector<Holder> holders;
  if (claim.share) {
    holders = permits().shareHolders(claim.key, callEnd(now()));
  } else if (auto holder = driver_->holder(claim.key, callEnd(now()))) {
    holders.push_back(std::move(*holder));
  }
  std::erase_if(holders, [&](const Holder& each) {
    if (each.share != claim.share || (each.fence && fence && *each.fence < *fence)) return true;
    if (!each.grantId.empty()) return each.owner != claim.owner;
    // The fence alone tells the grant; shown is that of the last turn. The store may show the owner cut.
    return !each.fence || !fence || *each.fence - *fence > lease.turnsLeft;
  });
  if (holders.size() != 1) return std::nullopt;
  return OwnerToken{.key = lease.key(), .grant = std::move(holders.front()), .fence = fence};
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
