#include "lock/engine.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/either_stop.h"
#include "lock/engine_call.h"
#include "lockkeeper/base/key.h"

namespace lockkeeper::detail {

namespace {

std::shared_ptr<LockDriver> checked(std::shared_ptr<LockDriver> driver) {
  if (driver == nullptr) throw std::invalid_argument("a LockManager needs a driver");
  return driver;
}

}  // namespace

// `call` ends by then, give or take one I/O timeout.
Instant Engine::latestEnd(const Call& call) const {
  return saturatingAdd(call.waitUntil, options_.operationTimeout);
}

Engine::Engine(std::shared_ptr<LockDriver> driver, ManagerOptions options)
    : options_(completed(std::move(options))),
      driver_(checked(std::move(driver))),
      waitable_(capability<Waitable>(*driver_)),
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

void Engine::stop() noexcept {
  // In a forked child, those who wait are not here, and what would wake them is the parent's.
  if (!forkGuard_.inherited()) stop_.request_stop();
}

void Engine::withdraw(const Lease& lease) noexcept {
  keeper_->abandon(lease.claim(), lease.endAtLatest(now()));
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
