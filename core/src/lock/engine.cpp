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

// The call returns by then, plus one I/O timeout at most.
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
    // The parent's threads do not exist here, may have held the mutexes, and own the sockets: leak all of it.
    new (std::nothrow) auto(keeper_);
    new (std::nothrow) auto(driver_);
    return;
  }
  // leave() has not done so if two threads left at the same time: neither of them knew to be the last.
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
  // A call that does not wait needs no lease if the first one in line knows the answer. Claims of shares do
  // not line up in this process: several may be granted at once, and the store keeps their order.
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

// Makes the Lock of a lease that is kept already, and tells the listener of it.
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

// Ends a call that never was the first in line: its answer is what the first one knows of the key.
void Engine::endWithoutTurn(std::string_view key, const Call& call, LocalQueue::Answer known) const {
  if (known == LocalQueue::Answer::none && !call.stop.stop_requested()) {
    const StoreUnavailable error(
        "another caller of this process has asked the store for the key and gets no answer");
    tellEnd(EventKind::gaveUp, key, call, &error);
    throw error;
  }
  tellBusy(key, call);
}

// Waits in line for the turn. If a lease is handed over that cannot be used, the call goes on with a new one.
LocalQueue::Entered Engine::enter(std::shared_ptr<Lease>& lease, Call& call) {
  while (!stopped()) {
    const auto entered = queue_.enter(*lease,
                                      {.until = call.waitUntil,
                                       .answerBy = latestEnd(call),
                                       .began = call.began,
                                       .longestOutage = call.longestOutage},
                                      call.stop);
    if (!entered.handedOver || startsWell(*lease, call)) return entered;
    // A lease that was lost meanwhile has lost its turn as well.
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

// Whether a lease that was handed over may be given to the application: at least half of its length is left,
// and the store has confirmed it since the last failover. If not, it is renewed first.
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
  // In a forked child there is no thread that waits, and the parent's mutexes must not be touched.
  if (!forkGuard_.inherited()) stop_.request_stop();
}

void Engine::withdraw(const Lease& lease) noexcept {
  keeper_->abandon(lease.claim(), lease.endAtLatest(now()));
}

void Engine::tellFailure(const Lease& lease, Instant began, const Error& error) const {
  const Instant ended = now();
  const auto leftOut = toldFailures_.admit(error.code(), ended);
  if (!leftOut) return;
  options_.environment.tell({.kind = EventKind::attemptFailed,
                             .key = lease.key(),
                             .store = store_,
                             .began = began,
                             .ended = ended,
                             .error = error.code(),
                             .text = error.what(),
                             .leftOut = *leftOut,
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
    // Without an id only the fence identifies the grant. The store shows the fence of its last turn.
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
