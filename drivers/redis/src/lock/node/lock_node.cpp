#include "lock/node/lock_node.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "lock/lock_replies.h"
#include "lock/lock_value.h"
#include "lock/node/claims_under_way.h"
#include "lock/ordered_claims.h"
#include "store/companion_key.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

// A lock that is handed on inside the process comes back to the store after
// that, for those who poll; who waits in the queue is reported at once.
constexpr milliseconds longestStay{10};

std::string decimal(milliseconds length) { return std::to_string(length.count()); }

}  // namespace

LockNode::LockNode(const RedisOptions& options, const Environment& environment, std::function<void()> onDoubt)
    : RedisStore(options, environment, [this, onDoubt = std::move(onDoubt)] {
        rights_.serverChanged();
        queue.serverChanged();
        onDoubt();
      }) {}

AcquireResult LockNode::acquire(const AcquireRequest& request) {
  const RequestPool::Loan wire = requests.take();
  const AcquireResult result = attempt(request, *wire);
  if (std::holds_alternative<Granted>(result)) checkReplicas({&request, 1}, *wire);
  return result;
}

std::vector<AcquireResult> LockNode::acquireInOrder(std::span<const AcquireRequest> requested) {
  rights_.check(requested.front().claim.key, requested.front().deadline);
  const RequestPool::Loan wire = requests.take();
  executeScripts(*wire, requested.front().deadline,
                 [&](Request& call, Script::By by) { addOrderedClaims(call, by, options(), requested); });
  std::vector<AcquireResult> results = orderedResults(*this, *wire, wire->reply(0), requested);
  checkReplicas(grantedOf(requested, results), *wire);
  return results;
}

std::unique_ptr<ClaimsUnderWay> LockNode::sendInOrder(std::vector<std::vector<AcquireRequest>> groups) {
  rights_.check(groups.front().front().claim.key, groups.front().front().deadline);
  return std::make_unique<ClaimsUnderWay>(*this, std::move(groups));
}

AcquireResult LockNode::acquireWaiting(const AcquireRequest& request, Instant until,
                                       const std::stop_token& stop, std::string& ticket) {
  // Who has a place in the queue must look, to leave it where rights are missing.
  if (ticket.empty()) rights_.check(request.claim.key, request.deadline);
  const RequestPool::Loan wire = requests.take();
  const AcquireResult result = queue.wait(request, lockValue(request.claim), until, stop, ticket, *wire);
  if (std::holds_alternative<Busy>(result)) return result;
  ticket.clear();  // it has left the queue with the grant
  AcquireRequest granted = request;
  granted.deadline = std::min(saturatingAdd(clock().now(), options().replicaTimeout), until);
  checkReplicas({&granted, 1}, *wire);
  return result;
}

void LockNode::renew(std::span<Renewal> renewals, std::span<std::optional<Redirect>> redirects,
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
void LockNode::checkReplicas(std::span<Renewal> renewals, std::uint64_t connection, Instant deadline) {
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
  const ReplicaCount::Answer answer =
      replicas_.having(connection, std::move(some), saturatingAdd(deadline, options().ioTimeout));
  if (answer.replicas >= least) return;
  for (Renewal* each : done) {
    each->outcome = RenewOutcome::unavailable;
    each->cause = name() + ": fewer than " + std::to_string(least) + " replicas have confirmed the renewal" +
                  (answer.refusal.empty() ? "" : ": " + answer.refusal);
  }
}

ReleaseOutcome LockNode::release(const Claim& claim, Instant deadline) {
  const bool released = queue.release(claim, lockValue(claim), deadline);
  return released ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

bool LockNode::postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) {
  return queue.postRelease(claim, lockValue(claim), std::move(listener));
}

std::optional<Holder> LockNode::holder(std::string_view key, Instant deadline) {
  Request wire;
  const auto ask = [&](bool withFence) {
    wire.clear();
    executeScripts(wire, deadline,
                   [&](Request& call, Script::By by) { addHolder(call, by, key, withFence); });
  };
  ask(true);
  // While the key's slot is on its way to another node of a cluster, its
  // counter may be there already.
  if (isOnItsWay(wire.reply(0))) ask(false);
  return holderIn(wire, 0, false);
}

// Without a look at the replicas.
AcquireResult LockNode::attempt(const AcquireRequest& request, Request& wire) {
  rights_.check(request.claim.key, request.deadline);
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

void LockNode::checkReplicas(std::span<const AcquireRequest> granted, const Request& wire) {
  const std::uint32_t least = options().minReplicas;
  if (least == 0 || granted.empty()) return;
  std::vector<ReplicaCount::Written> some;
  for (const AcquireRequest& each : granted.first(std::min(granted.size(), ReplicaCount::enough)))
    some.push_back({std::string(each.claim.key), lockValue(each.claim).string()});
  // A call may last for one I/O timeout longer: half of it to ask, the rest to give back.
  const Instant deadline = granted.front().deadline;
  const ReplicaCount::Answer answer = replicas_.having(wire.connection(), std::move(some),
                                                       saturatingAdd(deadline, options().ioTimeout / 2));
  if (answer.replicas >= least) return;

  const std::string few = name() + ": only " + std::to_string(answer.replicas) + " of " +
                          std::to_string(least) + " replicas acknowledged the grant";
  try {
    const Instant end = saturatingAdd(deadline, options().ioTimeout);
    for (const AcquireRequest& each : granted) queue.release(each.claim, lockValue(each.claim), end);
  } catch (const Error&) {
    throw WithdrawalUnknown(few + "; giving it back failed");
  }
  if (!answer.refusal.empty()) throw ConfigError(answer.refusal + ", to ask for replicas");
  throw StoreUnavailable(few + "; it was given back");
}

// To the bare SET … NX.
AcquireResult LockNode::setResult(const Request& request, milliseconds ttl) {
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (reply.kind == ReplyKind::nil) return Busy{};
  if (reply.kind != ReplyKind::status || reply.text != "OK") unexpected(request);
  return Granted{request.sentAt(), ttl, std::nullopt};
}

void LockNode::addHolder(Request& request, Script::By by, std::string_view key, bool withFence) const {
  const ComposedText counter = companionKey(key, "fence");
  const std::array<std::string_view, 2> keys = {key, counter};
  Script::holder().addTo(request, by, std::span(keys).first(options().fence && withFence ? 2 : 1), {});
}

std::optional<Holder> LockNode::holderIn(const Request& request, std::size_t index, bool oursOnly) {
  const Reply& reply = request.reply(index);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (!isHolderReply(reply)) unexpected(request);
  if (oursOnly && reply.kind != ReplyKind::nil && !textIn(reply.items[0].text)) return std::nullopt;
  return redis::holderIn(reply);
}

void LockNode::list(std::string_view prefix, const Visit& visit, Instant deadline) {
  bool more = true;
  const auto visitOurs = [&](std::span<const std::string_view> keys) {
    return more = visitHolders(keys, true, visit, deadline);
  };
  scan(prefix, "string", deadline, visitOurs);
  // Keys that are shared.
  if (more) scan(prefix, "zset", deadline, visitOurs);
}

std::string LockNode::listBusy(std::string_view place, const Wanted& wanted, const Visit& visit,
                               Instant deadline) {
  KeyPage page = scanPage("", "", place, deadline);
  std::erase_if(page.keys, [&](const std::string& key) { return !wanted(key); });
  const std::vector<std::string_view> keys(page.keys.begin(), page.keys.end());
  if (!keys.empty()) visitHolders(keys, false, visit, deadline);
  return page.next;
}

// False when `visit` has ended it.
bool LockNode::visitHolders(std::span<const std::string_view> keys, bool oursOnly, const Visit& visit,
                            Instant deadline) {
  Request holders;
  executeScripts(holders, deadline, [&](Request& call, Script::By by) {
    for (const std::string_view key : keys) addHolder(call, by, key);
  });
  for (std::size_t index = 0; index < keys.size(); ++index) {
    const auto holder = holderIn(holders, index, oursOnly);
    if (holder && !visit(keys[index], *holder)) return false;
  }
  return true;
}

RenewOutcome LockNode::renewed(const Request& request, std::size_t index) {
  if (request.reply(index).kind == ReplyKind::error) return failedRenewal(request.reply(index));
  return flagOf(request, index) ? RenewOutcome::renewed : RenewOutcome::notOwner;
}

}  // namespace lockkeeper::redis
