#include "lockkeeper/redis/cluster_driver.h"
#include "lockkeeper/base/loss_listeners.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "cluster/cluster_records.h"
#include "cluster/cluster_renewals.h"
#include "cluster/node_parts.h"
#include "cluster/spread_claims.h"
#include "cluster/topology/slot_map.h"
#include "limit/rates.h"
#include "lock/node_calls.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/redis/redis_driver.h"
#include "store/companion_key.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

namespace {

using Visit = std::function<bool(std::string_view key, const Holder& holder)>;
using List = void (RedisDriver::*)(std::string_view prefix, const Visit& visit, Instant deadline);

// Those at the front whose keys are in the slot of the first one.
std::span<const AcquireRequest> ofFirstSlot(std::span<const AcquireRequest> requests) {
  const std::uint16_t slot = hashSlot(requests.front().claim.key);
  const auto other = std::ranges::find_if(
      requests, [&](const AcquireRequest& each) { return hashSlot(each.claim.key) != slot; });
  return {requests.begin(), other};
}

/// Passes on what one node's driver reports.
class DoubtOfNode final : public LossListener {
 public:
  explicit DoubtOfNode(const LossListeners& listeners) : listeners_(listeners) {}

  void claimsLost(std::span<const Token> tokens) noexcept override { listeners_.claimsLost(tokens); }
  void claimsInDoubt() noexcept override { listeners_.claimsInDoubt(); }

 private:
  const LossListeners& listeners_;
};

}  // namespace

/// What the driver's operations share.
class ClusterDriver::Impl {
 public:
  Impl(const ClusterOptions& given, const Environment& environment)
      : options((given.check(), given)),
        clock(environment.clock),
        topology(options, environment, [this] { doubts.claimsInDoubt(); }),
        nodes(
            topology, options.node,
            [this, environment](RedisOptions node) {
              auto made = std::make_shared<RedisDriver>(std::move(node), environment);
              made->addDoubtListener(doubtOfNode);
              return made;
            },
            // Who has posted a release hears of its end.
            [this](const Nodes& dropped) {
              awaitPosted(dropped, saturatingAdd(clock->now(), options.node.ioTimeout));
            }) {}

  template <class Call>
  auto at(std::string_view key, Instant deadline, Call&& call) {
    forkGuard.check();
    return nodes.at(hashSlot(key), deadline, std::forward<Call>(call));
  }

  using Nodes = NodeParts<RedisDriver>::Parts;

  void awaitPosted(const Nodes& some, Instant deadline) const;
  void checkServer(Instant deadline);
  AcquireResult wait(AcquireRequest request, Instant until, const std::stop_token& stop);
  void list(std::string_view prefix, List listOf, const Visit& visit, Instant deadline);
  void addWaiters(const NodeAddress& master, std::span<const std::string> keys,
                  std::span<const std::size_t> indexes, std::vector<std::vector<Waiter>>& found,
                  Instant deadline);
  std::uint16_t commonSlot(std::span<const RateCharge> charges) const;

  const ForkGuard forkGuard;
  const ClusterOptions options;
  const std::shared_ptr<Clock> clock;
  LossListeners doubts;
  const std::shared_ptr<DoubtOfNode> doubtOfNode = std::make_shared<DoubtOfNode>(doubts);
  Topology topology;
  NodeParts<RedisDriver> nodes;
  ClusterRenewals renewals{topology, nodes};
  SpreadClaims spread{topology, nodes, options.node.ioTimeout, *clock};
  ClusterRecords records{nodes};
};

ClusterDriver::ClusterDriver(ClusterOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(options, environment)) {}

ClusterDriver::~ClusterDriver() {
  // Closing an inherited connection properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult ClusterDriver::acquire(const AcquireRequest& request) {
  return impl_->at(request.claim.key, request.deadline,
                   [&](RedisDriver& node) { return node.acquire(request); });
}

AcquireResult ClusterDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                            std::stop_token stop) {
  impl_->forkGuard.check();
  return impl_->wait(request, saturatingAdd(impl_->clock->now(), waitFor), stop);
}

std::vector<AcquireResult> ClusterDriver::acquireInOrder(std::span<const AcquireRequest> requests) {
  std::vector<AcquireResult> results;
  if (requests.front().waits && ofFirstSlot(requests).size() < requests.size()) {
    impl_->forkGuard.check();
    results = impl_->spread.acquire(requests);
  }
  while (results.size() < requests.size()) {
    if (!results.empty() && std::holds_alternative<Busy>(results.back())) break;
    const auto run = ofFirstSlot(requests.subspan(results.size()));
    try {
      const auto some = impl_->at(run.front().claim.key, run.front().deadline,
                                  [&](RedisDriver& node) { return node.acquireInOrder(run); });
      results.insert(results.end(), some.begin(), some.end());
    } catch (const StoreUnavailable&) {
      if (results.empty()) throw;
      return results;
    }
  }
  return results;
}

bool ClusterDriver::waitersReportedSince(Instant since) noexcept {
  if (impl_->forkGuard.inherited()) return false;
  try {
    for (const auto& node : impl_->nodes.all()) {
      if (node->waitersReportedSince(since)) return true;
    }
  } catch (const std::exception&) {
    // No memory: it is only a hint.
  }
  return false;
}

void ClusterDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  impl_->renewals.renew(renewals, deadline);
}

ReleaseOutcome ClusterDriver::release(const Claim& claim, Instant deadline) {
  return impl_->at(claim.key, deadline, [&](RedisDriver& node) { return node.release(claim, deadline); });
}

bool ClusterDriver::postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) {
  impl_->forkGuard.check();
  const auto route = impl_->topology.knownRoute(hashSlot(claim.key));
  return route && impl_->nodes.post(route->master, [&](RedisDriver& node) {
    return node.postRelease(claim, std::move(listener));
  });
}

void ClusterDriver::awaitPosted(Instant deadline) noexcept {
  if (impl_->forkGuard.inherited()) return;
  try {
    impl_->awaitPosted(impl_->nodes.all(), deadline);
  } catch (const std::exception&) {
    // No memory: another call reads them.
  }
}

std::optional<Holder> ClusterDriver::holder(std::string_view key, Instant deadline) {
  return impl_->at(key, deadline, [&](RedisDriver& node) { return node.holder(key, deadline); });
}

Promises ClusterDriver::promises() const {
  impl_->forkGuard.check();
  Promises promises{
      .fence = impl_->options.node.fence ? FencePromise::whileStoreKeepsWrites : FencePromise::none,
      .durability = "not connected yet"};
  for (const auto& node : impl_->nodes.all()) {
    const std::string known = node->promises().durability;
    if (known != promises.durability) return {promises.fence, known};
  }
  return promises;
}

std::string ClusterDriver::name() const { return impl_->topology.name(); }

void* ClusterDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(SharedRecords)) return static_cast<SharedRecords*>(&impl_->records);
  return capabilityOf<Postable, Waitable, Batchable, Browsable, WaiterBrowsable, Breakable, DoubtReporting,
                      Permits, RateDriver>(*this, type);
}

void ClusterDriver::addDoubtListener(std::weak_ptr<LossListener> listener) {
  impl_->forkGuard.check();
  impl_->doubts.add(std::move(listener));
}

std::optional<std::chrono::milliseconds> ClusterDriver::checkEvery() const { return pauseBetweenLooks; }

void ClusterDriver::checkServer(Instant deadline) noexcept {
  if (impl_->forkGuard.inherited()) return;
  try {
    impl_->checkServer(deadline);
  } catch (const std::exception&) {
    // Who needs the cluster hears of it.
  }
}

void ClusterDriver::list(std::string_view prefix, const Visit& visit, Instant deadline) {
  impl_->list(prefix, &RedisDriver::list, visit, deadline);
}

void ClusterDriver::listBusy(std::string_view prefix, const Visit& visit, Instant deadline) {
  impl_->list(prefix, &RedisDriver::listBusy, visit, deadline);
}

bool ClusterDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  return impl_->at(key, deadline, [&](RedisDriver& node) { return node.breakLock(key, deadline, shown); });
}

std::vector<std::vector<Waiter>> ClusterDriver::waiters(std::span<const std::string> keys, Instant deadline) {
  impl_->forkGuard.check();
  std::map<NodeAddress, std::vector<std::size_t>> keysOf;
  for (std::size_t index = 0; index < keys.size(); ++index) {
    keysOf[impl_->topology.route(hashSlot(keys[index]), deadline).master].push_back(index);
  }
  std::vector<std::vector<Waiter>> found(keys.size());
  for (const auto& [master, indexes] : keysOf) impl_->addWaiters(master, keys, indexes, found, deadline);
  return found;
}

std::vector<Holder> ClusterDriver::shareHolders(std::string_view key, Instant deadline) {
  return impl_->at(key, deadline, [&](RedisDriver& node) { return node.shareHolders(key, deadline); });
}

bool ClusterDriver::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  return impl_->at(key, deadline, [&](RedisDriver& node) { return node.resize(key, limit, deadline); });
}

// A master mostly has slots that are next to each other.
std::size_t ClusterDriver::partOf(std::string_view key) const noexcept {
  return hashSlot(key) / (SlotMap::slots / mostParts);
}

void ClusterDriver::take(std::span<RateCharge> charges, Instant deadline) {
  impl_->forkGuard.check();
  if (charges.empty()) return;
  impl_->nodes.at(impl_->commonSlot(charges), deadline,
                  [&](RedisDriver& node) { node.take(charges, deadline); });
}

void ClusterDriver::peek(std::span<RateCharge> charges, Instant deadline) {
  impl_->forkGuard.check();
  if (charges.empty()) return;
  impl_->nodes.at(impl_->commonSlot(charges), deadline,
                  [&](RedisDriver& node) { node.peek(charges, deadline); });
}

bool ClusterDriver::refund(const RateRefund& refund, Instant deadline) {
  return impl_->at(limitKey(refund.key, refund.law->kind), deadline,
                   [&](RedisDriver& node) { return node.refund(refund, deadline); });
}

void ClusterDriver::reset(std::string_view key, RateKind kind, Instant deadline) {
  impl_->at(limitKey(key, kind), deadline, [&](RedisDriver& node) { node.reset(key, kind, deadline); });
}

void ClusterDriver::Impl::awaitPosted(const Nodes& some, Instant deadline) const {
  // What has come is read everywhere before one node is waited for.
  const Instant now = clock->now();
  for (const auto& node : some) node->awaitPosted(std::min(now, deadline));
  for (const auto& node : some) node->awaitPosted(deadline);
}

void ClusterDriver::Impl::checkServer(Instant deadline) {
  bool allAnswer = true;
  for (const auto& node : nodes.all()) {
    try {
      const Instant latest = saturatingAdd(clock->now(), options.node.ioTimeout);
      capability<NodeCalls>(*node)->ping(std::min(deadline, latest));
    } catch (const Error&) {
      allAnswer = false;
    }
  }
  if (!allAnswer) (void)topology.masters(deadline);
}

// Of the keys with these indexes, together; one by one when one of them is somewhere else by now.
void ClusterDriver::Impl::addWaiters(const NodeAddress& master, std::span<const std::string> keys,
                                     std::span<const std::size_t> indexes,
                                     std::vector<std::vector<Waiter>>& found, Instant deadline) {
  std::vector<std::string> some;
  for (const std::size_t index : indexes) some.push_back(keys[index]);
  try {
    auto waiters = nodes.of(master, false)->waiters(some, deadline);
    for (std::size_t i = 0; i < indexes.size(); ++i) found[indexes[i]] = std::move(waiters[i]);
  } catch (const StoreUnavailable&) {
    for (const std::size_t index : indexes) {
      found[index] = at(keys[index], deadline, [&](RedisDriver& node) {
        return std::move(node.waiters(keys.subspan(index, 1), deadline).front());
      });
    }
  }
}

// The queue moves with its lock: who waits goes on in its old place.
AcquireResult ClusterDriver::Impl::wait(AcquireRequest request, Instant until, const std::stop_token& stop) {
  Journey journey(topology, hashSlot(request.claim.key), request.deadline);
  std::string ticket;
  while (true) {
    const std::shared_ptr<RedisDriver> node = nodes.of(journey.node(), journey.importing());
    const Instant began = clock->now();
    try {
      return capability<NodeCalls>(*node)->wait(request, std::max(until - began, Instant::duration::zero()),
                                                stop, ticket);
    } catch (const Error& error) {
      const Instant now = clock->now();
      request.deadline = std::max(request.deadline, saturatingAdd(now, options.node.ioTimeout));
      if (now - began > longCall) journey.goOn(request.deadline);
      try {
        if (now >= until || stop.stop_requested()) throw;
        journey.follow(error);
      } catch (const StoreUnavailable& end) {
        if (ticket.empty()) throw;
        throw OutcomeUnknown(std::string(end.what()) + "; the claim may still be in the queue");
      }
    }
  }
}

// No key twice, also of a slot that moves from one master to the next meanwhile.
void ClusterDriver::Impl::list(std::string_view prefix, List listOf, const Visit& visit, Instant deadline) {
  forkGuard.check();
  std::unordered_set<std::string> seen;
  bool enough = false;
  for (const NodeAddress& master : topology.masters(deadline)) {
    const auto visitNew = [&](std::string_view key, const Holder& holder) {
      enough = seen.emplace(key).second && !visit(key, holder);
      return !enough;
    };
    ((*nodes.of(master, false)).*listOf)(prefix, visitNew, deadline);
    if (enough) return;
  }
}

std::uint16_t ClusterDriver::Impl::commonSlot(std::span<const RateCharge> charges) const {
  const auto slotOf = [](const RateCharge& charge) {
    return hashSlot(limitKey(charge.key, charge.law->kind));
  };
  const std::uint16_t slot = slotOf(charges.front());
  for (const RateCharge& each : charges) {
    if (slotOf(each) == slot) continue;
    throw ConfigError(topology.name() +
                      ": limits that are asked together need one hash tag in their keys, such as {user:7}");
  }
  return slot;
}

}  // namespace lockkeeper::redis
