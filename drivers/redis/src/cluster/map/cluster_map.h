#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/map/node_views.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/redis/cluster_options.h"

namespace lockkeeper::redis {

/// Which master of a Redis Cluster has which slot, as far as this process knows. It is learnt from the nodes
/// when the first call comes, from each MOVED, and once more after a master could not be reached or had a
/// slot no longer: by the caller who needs it, one at a time, with pauses of 50 to 500 ms, so that a crowd of
/// callers in an outage costs the cluster no more than one. Who was in such a hurry that it failed delays
/// nobody who has twice the time. No thread of its own. Thread-safe.
class ClusterMap {
 public:
  struct Route {
    std::uint16_t slot = 0;
    NodeAddress master{};
  };

  /// `onNewMaster` is called when a node has become a master with slots, before any call is sent there: it
  /// may be a replica that has taken over. Slots that go from one master to another one bring their keys
  /// along. It must not block, and must not call the map.
  ClusterMap(const ClusterOptions& options, const Environment& environment,
             std::function<void()> onNewMaster = {});

  /// The slot's master. Asks the nodes when that is not known, or was suspect()ed. Throws StoreUnavailable
  /// when no node tells until `deadline`, or the slot has no master; ConfigError for nodes that are of no
  /// cluster, or of different ones, and for a set-up that they refuse.
  Route route(std::uint16_t slot, Instant deadline);

  /// The same without asking, and without errors: empty when it is not known. Does not block.
  std::optional<Route> knownRoute(std::uint16_t slot) const;

  /// All masters with slots, asked for anew, unless that was done just now. Throws as route().
  std::vector<NodeAddress> masters(Instant deadline);

  /// A node has said that the slot is at `to` now.
  void moved(const Route& route, const NodeAddress& to);

  /// A call to the master has failed: the next route() to it asks the nodes.
  void suspect(const Route& route);

  /// The same, and asks now. True: the slot has another master by now, and `route` leads to it. False when it
  /// has not, or nobody tells until `deadline`.
  bool reconsider(Route& route, Instant deadline);

  /// Changes when a node becomes a master with slots, or is none any more.
  std::uint64_t version() const;
  /// Why the nodes did not tell when they were asked for the last time; empty when they did.
  std::string failure() const;
  bool isMaster(const NodeAddress& node) const;
  /// Whether the application has named this node; the others have been named by the cluster.
  bool isSeed(const NodeAddress& node) const { return seeds_.contains(node); }

  const std::string& name() const { return name_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void load(Lock& lock, Instant deadline);
  void refresh(Lock& lock, Instant deadline);
  bool learn(Lock& lock, Instant deadline);
  bool mayRefresh(Instant deadline) const;
  std::vector<std::vector<NodeAddress>> whomToAsk() const;
  NodeViews ask(const std::vector<std::vector<NodeAddress>>& groups, bool isFirst, Instant deadline) const;
  NodeView best(NodeViews& found) const;
  void leaveOutStrangers(NodeViews& found) const;
  void checkSeeds(const NodeViews& found, const NodeView& newest) const;
  std::vector<std::string> newFaults(const NodeViews& found);
  std::string adopt(NodeView view);
  void mastersChanged(const std::set<NodeAddress>& before);
  std::string changeTo(const SlotMap& map) const;

  const RedisOptions node_;
  const Environment environment_;
  Clock& clock_;
  const std::string name_;
  const std::function<void()> onNewMaster_;
  std::set<NodeAddress> seeds_;

  mutable std::mutex mutex_;
  std::condition_variable refreshed_;
  bool refreshing_ = false;
  Backoff backoff_;
  Instant lastRefresh_ = Instant::min();
  Instant nextRefresh_ = Instant::min();
  std::optional<Instant::duration> hurry_;  // the time of the last refresh, if it has failed for want of time
  std::exception_ptr failure_;              // of the last refresh
  std::optional<SlotMap> map_;
  std::uint64_t epoch_ = 0;
  std::uint64_t version_ = 0;
  std::set<NodeAddress> suspects_;
  std::set<NodeAddress> faultyNodes_;  // that the listener knows of
};

}  // namespace lockkeeper::redis
