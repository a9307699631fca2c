#include "lockkeeper/redis/redis_driver.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "cluster/cluster_renewals.h"
#include "cluster/spread_claims.h"
#include "cluster/topology.h"
#include "lock/node/lock_node.h"
#include "lock/queue_listing.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/loss_listeners.h"
#include "records/redis_records.h"
#include "store/companion_key.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

// Those at the front whose keys are in the slot of the first one.
std::span<const AcquireRequest> ofFirstSlot(std::span<const AcquireRequest> requests) {
  const std::uint16_t slot = hashSlot(requests.front().claim.key);
  const auto other = std::ranges::find_if(
      requests, [&](const AcquireRequest& each) { return hashSlot(each.claim.key) != slot; });
  return {requests.begin(), other};
}

std::uint16_t slotOf(const RateCharge& charge) { return hashSlot(limitKey(charge.key, charge.law->kind)); }

}  // namespace

/// What the driver's operations share.
class RedisDriver::Impl {
 public:
  using Nodes = Topology<LockNode>::Nodes;

  Impl(const RedisOptions& given, const ClusterOptions* cluster, const Environment& environment)
      : options(given),
        clock(environment.clock),
        map(cluster != nullptr ? std::make_shared<ClusterMap>(*cluster, environment, tellDoubt()) : nullptr),
        nodes(
            map, options,
            [this, environment](const RedisOptions& node) {
              return std::make_shared<LockNode>(node, environment, tellDoubt());
            },
            [](LockNode& node) { return node.hasPosted(); }),
        records(map, options, environment) {}

  template <class Call>
  auto at(std::string_view key, Instant deadline, Call&& call) {
    forkGuard.check();
    return nodes.at(key, deadline, std::forward<Call>(call));
  }
  template <class Call>
  void atLimits(std::span<const RateCharge> charges, Instant deadline, Call&& call);

  std::function<void()> tellDoubt() {
    return [this] { doubts.claimsInDoubt(); };
  }
  void awaitPosted(const Nodes& some, Instant deadline) const;
  void lookAtMasters(Instant deadline);
  void list(std::string_view prefix, const LockNode::Visit& visit, Instant deadline);
  std::string listBusy(std::string_view place, const LockNode::Wanted& wanted, const LockNode::Visit& visit,
                       Instant deadline);
  void addWaiters(const NodeAddress& master, std::span<const std::string> keys,
                  std::span<const std::size_t> indexes, std::vector<std::vector<Waiter>>& found,
                  Instant deadline);

  const ForkGuard forkGuard;
  const RedisOptions options;
  const std::shared_ptr<Clock> clock;
  LossListeners doubts;
  const std::shared_ptr<ClusterMap> map;  // null for one server
  Topology<LockNode> nodes;
  RedisRecords records;
};

RedisDriver::RedisDriver(RedisOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(options, nullptr, environment)) {}

RedisDriver::RedisDriver(ClusterOptions options, Environment environment)
    : impl_(std::make_unique<Impl>((options.check(), options.node), &options, environment)) {}

RedisDriver::~RedisDriver() {
  // Closing an inherited connection properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult RedisDriver::acquire(const AcquireRequest& request) {
  return impl_->at(request.claim.key, request.deadline,
                   [&](LockNode& node) { return node.acquire(request); });
}

// The queue moves with its lock: who waits goes on in its old place.
AcquireResult RedisDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                          std::stop_token stop) {
  impl_->forkGuard.check();
  const Clock& clock = *impl_->clock;
  const Instant until = saturatingAdd(clock.now(), waitFor);
  std::string ticket;
  const auto wait = [&](LockNode& node, Instant deadline) {
    AcquireRequest present = request;
    present.deadline = deadline;
    return node.acquireWaiting(present, until, stop, ticket);
  };
  try {
    return impl_->nodes.wait(request.claim.key, request.deadline, until, stop, clock, wait);
  } catch (const StoreUnavailable& error) {
    if (ticket.empty()) throw;
    throw OutcomeUnknown(std::string(error.what()) + "; the claim may still be in the queue");
  }
}

std::vector<AcquireResult> RedisDriver::acquireInOrder(std::span<const AcquireRequest> requests) {
  impl_->forkGuard.check();
  if (LockNode* const only = impl_->nodes.only()) return only->acquireInOrder(requests);
  std::vector<AcquireResult> results;
  if (requests.front().waits && ofFirstSlot(requests).size() < requests.size()) {
    results = SpreadClaims(impl_->nodes, impl_->options.ioTimeout, *impl_->clock).acquire(requests);
  }
  while (results.size() < requests.size()) {
    if (!results.empty() && std::holds_alternative<Busy>(results.back())) break;
    const auto run = ofFirstSlot(requests.subspan(results.size()));
    try {
      const auto some = impl_->nodes.at(run.front().claim.key, run.front().deadline,
                                        [&](LockNode& node) { return node.acquireInOrder(run); });
      results.insert(results.end(), some.begin(), some.end());
    } catch (const StoreUnavailable&) {
      if (results.empty()) throw;
      return results;
    }
  }
  return results;
}

bool RedisDriver::waitersReportedSince(Instant since) noexcept {
  if (impl_->forkGuard.inherited()) return false;
  try {
    return impl_->nodes.any([&](LockNode& node) { return node.queue.waitersReportedSince(since); });
  } catch (const std::exception&) {
    return false;  // no memory: it is only a hint
  }
}

void RedisDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  if (LockNode* const only = impl_->nodes.only()) return only->renew(renewals, {}, deadline);
  ClusterRenewals(impl_->nodes).renew(renewals, deadline);
}

ReleaseOutcome RedisDriver::release(const Claim& claim, Instant deadline) {
  return impl_->at(claim.key, deadline, [&](LockNode& node) { return node.release(claim, deadline); });
}

bool RedisDriver::postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) {
  impl_->forkGuard.check();
  return impl_->nodes.post(claim.key,
                           [&](LockNode& node) { return node.postRelease(claim, std::move(listener)); });
}

void RedisDriver::awaitPosted(Instant deadline) noexcept {
  if (impl_->forkGuard.inherited()) return;
  try {
    impl_->awaitPosted(impl_->nodes.perhapsPosted(), deadline);
    (void)impl_->nodes.perhapsPosted();  // ends those that were only kept for that
  } catch (const std::exception&) {
    // No memory: another call reads them.
  }
}

std::optional<Holder> RedisDriver::holder(std::string_view key, Instant deadline) {
  return impl_->at(key, deadline, [&](LockNode& node) { return node.holder(key, deadline); });
}

std::string RedisDriver::name() const {
  return impl_->map ? impl_->map->name() : impl_->nodes.only()->name();
}

Promises RedisDriver::promises() const {
  impl_->forkGuard.check();
  std::string durability = "not connected yet";
  impl_->nodes.any([&](LockNode& node) {
    const std::string before = std::exchange(durability, node.durability());
    return durability != before;
  });
  const bool fence = impl_->options.fence;
  return {.fence = fence ? FencePromise::whileStoreKeepsWrites : FencePromise::none,
          .durability = durability};
}

void* RedisDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(SharedRecords)) return static_cast<SharedRecords*>(&impl_->records);
  return capabilityOf<Postable, Waitable, Batchable, Browsable, WaiterBrowsable, Breakable, DoubtReporting,
                      Permits, RateDriver>(*this, type);
}

void RedisDriver::addDoubtListener(std::weak_ptr<LossListener> listener) {
  impl_->forkGuard.check();
  impl_->doubts.add(std::move(listener));
}

std::optional<std::chrono::milliseconds> RedisDriver::checkEvery() const {
  const LockNode* const only = impl_->nodes.only();
  return only != nullptr ? only->checkEvery() : pauseBetweenLooks;
}

void RedisDriver::checkServer(Instant deadline) noexcept {
  if (impl_->forkGuard.inherited()) return;
  if (LockNode* const only = impl_->nodes.only()) return only->checkServer(deadline);
  try {
    impl_->lookAtMasters(deadline);
  } catch (const std::exception&) {
    // Who needs the cluster hears of it.
  }
}

void RedisDriver::list(std::string_view prefix, const LockNode::Visit& visit, Instant deadline) {
  impl_->list(prefix, visit, deadline);
}

std::string RedisDriver::listBusy(std::string_view place, const LockNode::Wanted& wanted,
                                  const LockNode::Visit& visit, Instant deadline) {
  return impl_->listBusy(place, wanted, visit, deadline);
}

bool RedisDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  const std::string_view grantId = shown != nullptr ? std::string_view(shown->grantId) : "";
  return impl_->at(key, deadline,
                   [&](LockNode& node) { return node.queue.breakLock(key, grantId, deadline); });
}

std::vector<std::vector<Waiter>> RedisDriver::waiters(std::span<const std::string> keys, Instant deadline) {
  impl_->forkGuard.check();
  if (LockNode* const only = impl_->nodes.only()) return waitersOf(*only, keys, deadline);
  std::map<NodeAddress, std::vector<std::size_t>> keysOf;
  for (std::size_t index = 0; index < keys.size(); ++index) {
    keysOf[impl_->map->route(hashSlot(keys[index]), deadline).master].push_back(index);
  }
  std::vector<std::vector<Waiter>> found(keys.size());
  for (const auto& [master, indexes] : keysOf) impl_->addWaiters(master, keys, indexes, found, deadline);
  return found;
}

std::vector<Holder> RedisDriver::shareHolders(std::string_view key, Instant deadline) {
  return impl_->at(key, deadline, [&](LockNode& node) { return node.permits.holders(key, deadline); });
}

bool RedisDriver::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  checkShare({.weight = 1, .limit = limit});
  return impl_->at(key, deadline, [&](LockNode& node) { return node.queue.resize(key, limit, deadline); });
}

void RedisDriver::take(std::span<RateCharge> charges, Instant deadline) {
  impl_->atLimits(charges, deadline, [&](Rates& rates) { rates.take(charges, deadline); });
}

void RedisDriver::peek(std::span<RateCharge> charges, Instant deadline) {
  impl_->atLimits(charges, deadline, [&](Rates& rates) { rates.peek(charges, deadline); });
}

bool RedisDriver::refund(const RateRefund& refund, Instant deadline) {
  return impl_->at(limitKey(refund.key, refund.law->kind), deadline,
                   [&](LockNode& node) { return node.rates.refund(refund, deadline); });
}

void RedisDriver::reset(std::string_view key, RateKind kind, Instant deadline) {
  impl_->at(limitKey(key, kind), deadline, [&](LockNode& node) { node.rates.reset(key, kind, deadline); });
}

// A master mostly has slots that are next to each other.
std::size_t RedisDriver::partOf(std::string_view key) const noexcept {
  return impl_->map ? hashSlot(key) / (SlotMap::slots / mostParts) : 0;
}

template <class Call>
void RedisDriver::Impl::atLimits(std::span<const RateCharge> charges, Instant deadline, Call&& call) {
  forkGuard.check();
  if (LockNode* const only = nodes.only()) return call(only->rates);
  if (charges.empty()) return;
  const auto isElsewhere = [slot = slotOf(charges.front())](const RateCharge& each) {
    return slotOf(each) != slot;
  };
  if (std::ranges::any_of(charges, isElsewhere)) {
    throw ConfigError(map->name() +
                      ": limits that are asked together need one hash tag in their keys, such as {user:7}");
  }
  nodes.at(limitKey(charges.front().key, charges.front().law->kind), deadline,
           [&](LockNode& node) { call(node.rates); });
}

void RedisDriver::Impl::awaitPosted(const Nodes& some, Instant deadline) const {
  // What has come is read everywhere before one node is waited for.
  const Instant now = clock->now();
  if (some.size() > 1) {
    for (const auto& node : some) node->awaitPosted(std::min(now, deadline));
  }
  for (const auto& node : some) node->awaitPosted(deadline);
}

// The map is asked for again when a master does not answer.
void RedisDriver::Impl::lookAtMasters(Instant deadline) {
  bool allAnswer = true;
  for (const auto& node : nodes.used()) {
    try {
      node->ping(std::min(deadline, node->oneTimeout()));
    } catch (const Error&) {
      allAnswer = false;
    }
  }
  if (!allAnswer) (void)map->masters(deadline);
}

// Of the keys with these indexes, together; one by one when one of them is somewhere else by now.
void RedisDriver::Impl::addWaiters(const NodeAddress& master, std::span<const std::string> keys,
                                   std::span<const std::size_t> indexes,
                                   std::vector<std::vector<Waiter>>& found, Instant deadline) {
  std::vector<std::string> some;
  for (const std::size_t index : indexes) some.push_back(keys[index]);
  try {
    auto waiters = waitersOf(*nodes.of(master, false), some, deadline);
    for (std::size_t i = 0; i < indexes.size(); ++i) found[indexes[i]] = std::move(waiters[i]);
  } catch (const StoreUnavailable&) {
    for (const std::size_t index : indexes) {
      found[index] = at(keys[index], deadline, [&](LockNode& node) {
        return std::move(waitersOf(node, keys.subspan(index, 1), deadline).front());
      });
    }
  }
}

void RedisDriver::Impl::list(std::string_view prefix, const LockNode::Visit& visit, Instant deadline) {
  forkGuard.check();
  if (LockNode* const only = nodes.only()) return only->list(prefix, visit, deadline);
  // No key twice, also of a slot that moves from one master to the next meanwhile.
  std::unordered_set<std::string> seen;
  bool enough = false;
  const auto visitNew = [&](std::string_view key, const Holder& holder) {
    enough = seen.emplace(key).second && !visit(key, holder);
    return !enough;
  };
  for (const NodeAddress& master : map->masters(deadline)) {
    nodes.of(master, false)->list(prefix, visitNew, deadline);
    if (enough) return;
  }
}

// A place in a cluster is a digest of all masters' addresses, one master's address, and a place on it. When
// there are other masters, all begins anew, since keys may have gone to those that were listed already.
std::string RedisDriver::Impl::listBusy(std::string_view place, const LockNode::Wanted& wanted,
                                        const LockNode::Visit& visit, Instant deadline) {
  forkGuard.check();
  if (LockNode* const only = nodes.only()) return only->listBusy(place, wanted, visit, deadline);
  const std::vector<NodeAddress> masters = map->masters(deadline);
  std::string all;
  for (const NodeAddress& each : masters) all += each.text() + " ";
  const std::string digest = sha1(all) + " ";
  auto master = masters.begin();
  std::string_view onMaster;
  if (place.starts_with(digest)) {
    place.remove_prefix(digest.size());
    const auto space = place.find(' ');
    master = std::ranges::find(masters, place.substr(0, space), &NodeAddress::text);
    onMaster = place.substr(space + 1);
  }
  const std::string next = nodes.of(*master, false)->listBusy(onMaster, wanted, visit, deadline);
  if (!next.empty()) return digest + master->text() + " " + next;
  return ++master == masters.end() ? "" : digest + master->text() + " ";
}

}  // namespace lockkeeper::redis
