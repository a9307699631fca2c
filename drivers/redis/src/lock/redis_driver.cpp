#include "lockkeeper/redis/redis_driver.h"
#include "lockkeeper/base/loss_listeners.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "limit/rates.h"
#include "lock/lock_replies.h"
#include "lock/lock_value.h"
#include "lock/node_calls.h"
#include "lock/ordered_claims.h"
#include "lock/permit_calls.h"
#include "lock/queue_listing.h"
#include "lock/replica_count.h"
#include "lock/rights.h"
#include "queue/wait_queue.h"
#include "store/companion_key.h"
#include "store/redis_records.h"
#include "store/redis_store.h"
#include "wire/protocol/redirect.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

// A lock that is handed on inside the process comes back to the store after that, for those who poll; who
// waits in the queue is reported at once.
constexpr milliseconds longestStay{10};

std::string decimal(milliseconds length) { return std::to_string(length.count()); }

}  // namespace

/// What the driver's operations share.
class RedisDriver::Impl : public RedisStore, public NodeCalls {
 public:
  Impl(const RedisOptions& options, const Environment& environment)
      : RedisStore(options, environment, [this] {
          queue.serverChanged();
          doubts.claimsInDoubt();
        }) {}

  class UnderWay;
  using Visit = std::function<bool(std::string_view key, const Holder& holder)>;

  void renew(std::span<Renewal> renewals, std::span<std::optional<Redirect>> redirects,
             Instant deadline) override;
  AcquireResult wait(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                     const std::stop_token& stop, std::string& ticket) override;
  void ping(Instant deadline) override { RedisStore::ping(deadline); }
  void list(std::string_view prefix, bool oursOnly, const Visit& visit, Instant deadline);
  AcquireResult attempt(const AcquireRequest& request, Request& wire);
  std::unique_ptr<ClaimsUnderWay> sendInOrder(std::vector<std::vector<AcquireRequest>> groups) override;
  void checkReplicas(std::span<const AcquireRequest> granted, const Request& wire);
  void checkReplicas(std::span<Renewal> renewals, std::uint64_t connection, Instant deadline);
  AcquireResult setResult(const Request& request, milliseconds ttl);
  void addHolder(Request& request, Script::By by, std::string_view key, bool withFence = true) const;
  std::optional<Holder> holderIn(const Request& request, std::size_t index, bool oursOnly);
  RenewOutcome renewed(const Request& request, std::size_t index);

  LossListeners doubts;
  Rights rights{*this};
  ReplicaCount replicas{*this};
  PermitCalls permits{*this};
  WaitQueue queue{*this};
  Rates rates{*this};
};

RedisDriver::RedisDriver(RedisOptions options, Environment environment)
    : records_(std::make_unique<RedisRecords>(options, environment)),
      impl_(std::make_unique<Impl>(options, environment)) {}

RedisDriver::~RedisDriver() {
  // Closing an inherited connection properly would close the parent's: leaking it is right.
  if (!impl_->forkGuard.inherited()) return;
  static_cast<void>(impl_.release());
  static_cast<void>(records_.release());
}

AcquireResult RedisDriver::acquire(const AcquireRequest& request) {
  impl_->forkGuard.check();
  const RequestPool::Loan wire = impl_->requests.take();
  const AcquireResult result = impl_->attempt(request, *wire);
  if (std::holds_alternative<Granted>(result)) impl_->checkReplicas({&request, 1}, *wire);
  return result;
}

AcquireResult RedisDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                          std::stop_token stop) {
  std::string ticket;
  return impl_->wait(request, waitFor, stop, ticket);
}

AcquireResult RedisDriver::Impl::wait(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                      const std::stop_token& stop, std::string& ticket) {
  forkGuard.check();
  const Instant until = saturatingAdd(clock().now(), waitFor);
  rights.check(request.claim.key, request.deadline);
  // All tickets are later ones.
  if (request.ahead && ticket.empty()) ticket = "0";
  const RequestPool::Loan wire = requests.take();
  const AcquireResult result = queue.wait(request, lockValue(request.claim), until, stop, ticket, *wire);
  if (std::holds_alternative<Busy>(result)) return result;
  AcquireRequest granted = request;
  granted.deadline = oneTimeout();
  checkReplicas({&granted, 1}, *wire);
  return result;
}

std::vector<AcquireResult> RedisDriver::acquireInOrder(std::span<const AcquireRequest> requests) {
  impl_->forkGuard.check();
  impl_->rights.check(requests.front().claim.key, requests.front().deadline);
  const RequestPool::Loan wire = impl_->requests.take();
  impl_->executeScripts(*wire, requests.front().deadline, [&](Request& call, Script::By by) {
    addOrderedClaims(call, by, impl_->options(), requests);
  });
  std::vector<AcquireResult> results = orderedResults(*impl_, *wire, wire->reply(0), requests);
  impl_->checkReplicas(grantedOf(requests, results), *wire);
  return results;
}

bool RedisDriver::waitersReportedSince(Instant since) noexcept {
  return !impl_->forkGuard.inherited() && impl_->queue.waitersReportedSince(since);
}

void RedisDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  impl_->renew(renewals, {}, deadline);
}

void RedisDriver::Impl::renew(std::span<Renewal> renewals, std::span<std::optional<Redirect>> redirects,
                              Instant deadline) {
  std::vector<ComposedText> values;
  values.reserve(renewals.size());
  for (const Renewal& each : renewals) values.push_back(lockValue(each.claim));
  renewAll(renewals, [&] {
    Request wire;
    executeScripts(wire, deadline, [&](Request& call, Script::By by) {
      for (std::size_t index = 0; index < renewals.size(); ++index) {
        const std::string ttl = decimal(renewals[index].ttl);
        const std::array<std::string_view, 1> keys = {renewals[index].claim.key};
        const std::array<std::string_view, 3> arguments = {values[index], ttl, "at least"};
        const Script& script = renewals[index].claim.share ? Script::renewPermits() : Script::renew();
        script.addTo(call, by, keys, std::span(arguments).first(renewals[index].atLeast ? 3 : 2));
      }
    });
    for (std::size_t index = 0; index < renewals.size(); ++index) {
      Renewal& each = renewals[index];
      each.outcome = renewed(wire, index);
      if (wire.reply(index).kind == ReplyKind::error) each.cause = faultIn(wire.reply(index));
      if (!redirects.empty()) redirects[index] = redirectIn(wire.reply(index));
      each.leasedFrom = wire.sentAt();
      each.leasedFor = each.ttl;
    }
    if (options().minReplicas > 0) checkReplicas(renewals, wire.connection(), deadline);
  });
}

// Those that too few replicas have count as not renewed.
void RedisDriver::Impl::checkReplicas(std::span<Renewal> renewals, std::uint64_t connection,
                                      Instant deadline) {
  std::vector<Renewal*> done;
  std::vector<ReplicaCount::Written> some;
  for (Renewal& each : renewals) {
    if (each.outcome != RenewOutcome::renewed) continue;
    done.push_back(&each);
    if (some.size() < ReplicaCount::enough)
      some.push_back({std::string(each.claim.key), lockValue(each.claim).string()});
  }
  if (done.empty()) return;
  const std::uint32_t least = options().minReplicas;
  const ReplicaCount::Answer answer = replicas.having(connection, std::move(some), deadline);
  if (answer.replicas >= least) return;
  for (Renewal* each : done) {
    each->outcome = RenewOutcome::unavailable;
    each->cause = name() + ": fewer than " + std::to_string(least) + " replicas have confirmed the renewal" +
                  (answer.refusal.empty() ? "" : ": " + answer.refusal);
  }
}

ReleaseOutcome RedisDriver::release(const Claim& claim, Instant deadline) {
  impl_->forkGuard.check();
  const bool released = impl_->queue.release(claim, lockValue(claim), deadline);
  return released ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

bool RedisDriver::postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) {
  impl_->forkGuard.check();
  return impl_->queue.postRelease(claim, lockValue(claim), std::move(listener));
}

void RedisDriver::awaitPosted(Instant deadline) noexcept {
  if (impl_->forkGuard.inherited()) return;
  try {
    impl_->awaitPosted(deadline);
  } catch (const std::exception&) {
    // No memory: another call reads them.
  }
}

std::optional<Holder> RedisDriver::holder(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  Request wire;
  const auto ask = [&](bool withFence) {
    wire.clear();
    impl_->executeScripts(wire, deadline,
                          [&](Request& call, Script::By by) { impl_->addHolder(call, by, key, withFence); });
  };
  ask(true);
  // While the key's slot is on its way to another node of a cluster, its counter may be there already.
  if (isOnItsWay(wire.reply(0))) ask(false);
  return impl_->holderIn(wire, 0, false);
}

std::string RedisDriver::name() const { return impl_->name(); }

Promises RedisDriver::promises() const {
  impl_->forkGuard.check();
  return {.fence = impl_->options().fence ? FencePromise::whileStoreKeepsWrites : FencePromise::none,
          .durability = impl_->durability()};
}

void* RedisDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(SharedRecords)) return records_.get();
  if (type == typeid(NodeCalls)) return static_cast<NodeCalls*>(impl_.get());
  return capabilityOf<Postable, Waitable, Batchable, Browsable, WaiterBrowsable, Breakable, DoubtReporting,
                      Permits, RateDriver>(*this, type);
}

void RedisDriver::addDoubtListener(std::weak_ptr<LossListener> listener) {
  impl_->forkGuard.check();
  impl_->doubts.add(std::move(listener));
}

std::optional<std::chrono::milliseconds> RedisDriver::checkEvery() const { return impl_->checkEvery(); }

void RedisDriver::checkServer(Instant deadline) noexcept {
  if (!impl_->forkGuard.inherited()) impl_->checkServer(deadline);
}

void RedisDriver::list(std::string_view prefix,
                       const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                       Instant deadline) {
  impl_->list(prefix, true, visit, deadline);
}

void RedisDriver::listBusy(std::string_view prefix,
                           const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                           Instant deadline) {
  impl_->list(prefix, false, visit, deadline);
}

bool RedisDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  impl_->forkGuard.check();
  return impl_->queue.breakLock(key, shown != nullptr ? std::string_view(shown->grantId) : "", deadline);
}

std::vector<std::vector<Waiter>> RedisDriver::waiters(std::span<const std::string> keys, Instant deadline) {
  impl_->forkGuard.check();
  return waitersOf(*impl_, keys, deadline);
}

std::vector<Holder> RedisDriver::shareHolders(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->permits.holders(key, deadline);
}

bool RedisDriver::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  impl_->forkGuard.check();
  checkShare({.weight = 1, .limit = limit});
  return impl_->queue.resize(key, limit, deadline);
}

void RedisDriver::take(std::span<RateCharge> charges, Instant deadline) {
  impl_->forkGuard.check();
  impl_->rates.take(charges, deadline);
}

void RedisDriver::peek(std::span<RateCharge> charges, Instant deadline) {
  impl_->forkGuard.check();
  impl_->rates.peek(charges, deadline);
}

bool RedisDriver::refund(const RateRefund& refund, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->rates.refund(refund, deadline);
}

void RedisDriver::reset(std::string_view key, RateKind kind, Instant deadline) {
  impl_->forkGuard.check();
  impl_->rates.reset(key, kind, deadline);
}

// Without a look at the replicas.
AcquireResult RedisDriver::Impl::attempt(const AcquireRequest& request, Request& wire) {
  rights.check(request.claim.key, request.deadline);
  if (request.claim.share) return permits.acquire(request, wire);
  const std::string_view key = request.claim.key;
  const ComposedText value = lockValue(request.claim);
  const std::string ttl = decimal(request.ttl);
  if (!options().fence && !request.resend) {
    wire.add({"SET", key, value, "NX", "PX", ttl});
    execute(wire, request.deadline);
    return setResult(wire, request.ttl);
  }
  const ComposedText counter = companionKey(key, "fence");
  const std::string kept = decimal(options().fenceKept);
  const bool several = options().fence && request.localHolders > 1;
  const WaitQueue::Watch watch = several ? queue.watch(key) : WaitQueue::Watch{};
  const std::string turns = several ? std::to_string(request.localHolders) : std::string();
  const std::array<std::string_view, 4> keys = {key, counter, watch.order, watch.waiters};
  const std::array<std::string_view, 5> arguments = {value, ttl, kept, turns, watch.channel};
  const std::size_t keyCount = several ? 4 : options().fence ? 2 : 1;
  executeScripts(wire, request.deadline, [&](Request& call, Script::By by) {
    Script::acquire().addTo(call, by, std::span(keys).first(keyCount),
                            std::span(arguments).first(several ? 5 : 3));
  });
  return acquireResult(*this, wire, wire.reply(0), request.ttl, several ? request.localHolders : 1,
                       watch.channel.empty() ? milliseconds{0} : longestStay);
}

// Gives the grants that `wire` has brought back, and throws, when too few replicas have them.
void RedisDriver::Impl::checkReplicas(std::span<const AcquireRequest> granted, const Request& wire) {
  const std::uint32_t least = options().minReplicas;
  if (least == 0 || granted.empty()) return;
  std::vector<ReplicaCount::Written> some;
  for (const AcquireRequest& each : granted.first(std::min(granted.size(), ReplicaCount::enough)))
    some.push_back({std::string(each.claim.key), lockValue(each.claim).string()});
  const ReplicaCount::Answer answer =
      replicas.having(wire.connection(), std::move(some), granted.front().deadline);
  if (answer.replicas >= least) return;

  const std::string few = name() + ": only " + std::to_string(answer.replicas) + " of " +
                          std::to_string(least) + " replicas acknowledged the grant";
  try {
    const Instant end = oneTimeout();
    for (const AcquireRequest& each : granted) queue.release(each.claim, lockValue(each.claim), end);
  } catch (const Error&) {
    throw WithdrawalUnknown(few + "; giving it back failed");
  }
  if (!answer.refusal.empty()) throw ConfigError(answer.refusal + ", to ask for replicas");
  throw StoreUnavailable(few + "; it was given back");
}

/// Of this node.
class RedisDriver::Impl::UnderWay final : public ClaimsUnderWay {
 public:
  UnderWay(Impl& impl, std::vector<std::vector<AcquireRequest>> groups)
      : impl_(impl), groups_(std::move(groups)), deadline_(groups_.front().front().deadline) {
    impl_.startScripts(*wire_, deadline_, fill());
    sent_ = true;
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() override {
    if (!sent_) return;
    try {
      impl_.finishScripts(*wire_, impl_.clock().now(), fill());
    } catch (const std::exception&) {
      // Nobody wants to know.
    }
  }

  std::vector<Outcome> await() override {
    sent_ = false;
    impl_.finishScripts(*wire_, deadline_, fill());
    std::vector<Outcome> outcomes(groups_.size());
    std::vector<AcquireRequest> granted;
    for (std::size_t index = 0; index < groups_.size(); ++index) {
      try {
        outcomes[index].results = orderedResults(impl_, *wire_, wire_->reply(index), groups_[index]);
        const auto some = grantedOf(groups_[index], outcomes[index].results);
        granted.insert(granted.end(), some.begin(), some.end());
      } catch (const std::exception&) {
        outcomes[index].failure = std::current_exception();
      }
    }
    try {
      impl_.checkReplicas(granted, *wire_);
    } catch (const std::exception&) {
      for (Outcome& each : outcomes) {
        if (!each.failure) each = {.results = {}, .failure = std::current_exception()};
      }
    }
    return outcomes;
  }

 private:
  std::function<void(Request& call, Script::By by)> fill() const {
    return [this](Request& call, Script::By by) {
      for (const auto& group : groups_) addOrderedClaims(call, by, impl_.options(), group);
    };
  }

  Impl& impl_;
  const std::vector<std::vector<AcquireRequest>> groups_;
  const Instant deadline_;
  const RequestPool::Loan wire_ =
      impl_.requests.take();  // it outlives this while the server may still answer
  bool sent_ = false;
};

std::unique_ptr<NodeCalls::ClaimsUnderWay> RedisDriver::Impl::sendInOrder(
    std::vector<std::vector<AcquireRequest>> groups) {
  forkGuard.check();
  rights.check(groups.front().front().claim.key, groups.front().front().deadline);
  return std::make_unique<UnderWay>(*this, std::move(groups));
}

// To the bare SET … NX.
AcquireResult RedisDriver::Impl::setResult(const Request& request, milliseconds ttl) {
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (reply.kind == ReplyKind::nil) return Busy{};
  if (reply.kind != ReplyKind::status || reply.text != "OK") unexpected(request);
  return Granted{request.sentAt(), ttl, std::nullopt};
}

void RedisDriver::Impl::addHolder(Request& request, Script::By by, std::string_view key,
                                  bool withFence) const {
  const ComposedText counter = companionKey(key, "fence");
  const std::array<std::string_view, 2> keys = {key, counter};
  Script::holder().addTo(request, by, std::span(keys).first(options().fence && withFence ? 2 : 1), {});
}

std::optional<Holder> RedisDriver::Impl::holderIn(const Request& request, std::size_t index, bool oursOnly) {
  const Reply& reply = request.reply(index);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (!isHolderReply(reply)) unexpected(request);
  if (oursOnly && reply.kind != ReplyKind::nil && !textIn(reply.items[0].text)) return std::nullopt;
  return redis::holderIn(reply);
}

void RedisDriver::Impl::list(std::string_view prefix, bool oursOnly, const Visit& visit, Instant deadline) {
  forkGuard.check();
  bool enough = false;
  const auto visitAll = [&](std::span<const std::string_view> keys) {
    Request holders;
    executeScripts(holders, deadline, [&](Request& call, Script::By by) {
      for (const std::string_view key : keys) addHolder(call, by, key);
    });
    for (std::size_t index = 0; index < keys.size(); ++index) {
      const auto holder = holderIn(holders, index, oursOnly);
      enough = holder && !visit(keys[index], *holder);
      if (enough) return false;
    }
    return true;
  };
  if (!oursOnly) return scan(prefix, "", deadline, visitAll);
  scan(prefix, "string", deadline, visitAll);
  // Keys that are shared.
  if (!enough) scan(prefix, "zset", deadline, visitAll);
}

RenewOutcome RedisDriver::Impl::renewed(const Request& request, std::size_t index) {
  if (request.reply(index).kind == ReplyKind::error) return failedRenewal(request.reply(index));
  return flagOf(request, index) ? RenewOutcome::renewed : RenewOutcome::notOwner;
}

}  // namespace lockkeeper::redis
