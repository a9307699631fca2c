#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/journey.h"
#include "store/companion_key.h"

namespace lockkeeper::redis {

/// Where the keys of a store are: on one server, or on the masters of a Redis Cluster. Has a `Node`, such as
/// the locks of a server, for each of them; for a master it is made when it is first needed. Those of nodes
/// that are masters no longer are dropped, and so end their connections, when their last call has ended, and
/// what was posted to them; with them go those for slots on their way. Nothing here waits for a node, but for
/// what it is asked to call. Thread-safe.
template <class Node>
class Topology {
 public:
  using Make = std::function<std::shared_ptr<Node>(const RedisOptions& node)>;
  using Nodes = std::vector<std::shared_ptr<Node>>;
  /// Whether something that was posted to the node has not ended.
  using HasPosted = std::function<bool(Node& node)>;

  /// Without a `map`, `options` are those of the one server; otherwise those of all masters, but for their
  /// addresses.
  Topology(std::shared_ptr<ClusterMap> map, RedisOptions options, Make make, HasPosted hasPosted = {})
      : map_(std::move(map)),
        options_(std::move(options)),
        make_(std::move(make)),
        hasPosted_(std::move(hasPosted)),
        only_(map_ ? nullptr : make_(options_)) {}

  /// The node of the one server; null for a cluster.
  Node* only() const { return only_.get(); }
  /// Only of a cluster.
  ClusterMap& map() { return *map_; }

  /// Calls `call` with the node that has the key; on a cluster, again with another one while redirects lead
  /// there, or the slot gets another master.
  template <class Call>
  auto at(std::string_view key, Instant deadline, Call&& call) {
    if (only_) return call(*only_);
    Journey journey(*map_, hashSlot(key), deadline);
    while (true) {
      const std::shared_ptr<Node> node = of(journey.node(), journey.importing());
      try {
        return call(*node);
      } catch (const Error& error) {
        journey.follow(error);
      }
    }
  }

  /// The same for a call that may wait, until `until` or `stop`; it is given the deadline too. When it has
  /// waited, the key may be somewhere else by then: it gets one more I/O timeout to go on there.
  template <class Call>
  auto wait(std::string_view key, Instant deadline, Instant until, const std::stop_token& stop,
            const Clock& clock, Call&& call) {
    if (only_) return call(*only_, deadline);
    Journey journey(*map_, hashSlot(key), deadline);
    while (true) {
      const std::shared_ptr<Node> node = of(journey.node(), journey.importing());
      const Instant began = clock.now();
      const bool mayWait = began < until && !stop.stop_requested();
      try {
        return call(*node, deadline);
      } catch (const Error& error) {
        const Instant now = clock.now();
        if (mayWait && (now >= until || stop.stop_requested())) throw;
        if (mayWait && now - began > longCall) {
          deadline = std::max(deadline, saturatingAdd(now, options_.ioTimeout));
          journey.goOn(deadline);
        }
        journey.follow(error);
      }
    }
  }

  /// Of a cluster. `importing`: for slots that are on their way to the node. A caller with an old route, to a
  /// node that is no master any more, gets one that is not kept.
  std::shared_ptr<Node> of(const NodeAddress& address, bool importing) {
    dropOthers();
    const std::lock_guard guard(mutex_);
    const auto found = masters_.find({address, importing});
    if (found != masters_.end()) return found->second;
    RedisOptions options = options_;
    options.host = address.host;
    options.port = address.port;
    options.cluster = importing ? ClusterUse::importingNode : ClusterUse::node;
    std::shared_ptr<Node> node = make_(options);
    if (importing || map_->isMaster(address)) masters_.emplace(std::pair(address, importing), node);
    return node;
  }

  /// Calls `post`, which says whether it has posted something, with the node that has the key, if that is
  /// known and there is one already. Does not block.
  template <class Post>
  bool post(std::string_view key, Post&& post) {
    if (only_) return post(*only_);
    const auto route = map_->knownRoute(hashSlot(key));
    const std::shared_ptr<Node> node = route ? existing(route->master) : nullptr;
    if (!node || !post(*node)) return false;
    if (existing(route->master) != node) keepForPosted({node});
    return true;
  }

  /// Whether `is` says so of one of those that have been used.
  template <class Is>
  bool any(Is&& is) const {
    if (only_) return is(*only_);
    const Nodes nodes = used();
    return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return is(*node); });
  }

  /// Those that have been used: of a cluster, those of masters.
  Nodes used() const {
    if (only_) return {only_};
    const std::lock_guard guard(mutex_);
    Nodes nodes;
    for (const auto& [place, node] : masters_) {
      if (!place.second) nodes.push_back(node);
    }
    return nodes;
  }

  /// Those, and the dropped ones to which something is posted that has not ended: unless somebody reads what
  /// they answer, nobody hears of it.
  Nodes perhapsPosted() {
    Nodes nodes = keepForPosted(takeDropped());
    const Nodes others = used();
    nodes.insert(nodes.end(), others.begin(), others.end());
    return nodes;
  }

 private:
  void dropOthers() {
    const std::uint64_t version = map_->version();
    Nodes dropped;
    {
      const std::lock_guard guard(mutex_);
      if (version == version_) return;
      version_ = version;
      std::erase_if(masters_, [&](auto& each) {
        const auto& [address, importing] = each.first;
        if (!importing && map_->isMaster(address)) return false;
        dropped.push_back(std::move(each.second));
        return true;
      });
    }
    keepForPosted(std::move(dropped));
  }

  Nodes takeDropped() {
    const std::lock_guard guard(mutex_);
    return std::exchange(dropped_, {});
  }

  // Those on which something posted is under way. Asks the nodes without the mutex.
  Nodes keepForPosted(Nodes dropped) {
    std::erase_if(dropped, [&](const auto& node) { return !hasPosted_ || !hasPosted_(*node); });
    const std::lock_guard guard(mutex_);
    dropped_.insert(dropped_.end(), dropped.begin(), dropped.end());
    return dropped;
  }

  std::shared_ptr<Node> existing(const NodeAddress& address) const {
    const std::lock_guard guard(mutex_);
    const auto found = masters_.find({address, false});
    return found == masters_.end() ? nullptr : found->second;
  }

  const std::shared_ptr<ClusterMap> map_;
  const RedisOptions options_;
  const Make make_;
  const HasPosted hasPosted_;
  const std::shared_ptr<Node> only_;

  mutable std::mutex mutex_;
  std::map<std::pair<NodeAddress, bool>, std::shared_ptr<Node>> masters_;  // by address and `importing`
  Nodes dropped_;  // those to which something is posted
  std::uint64_t version_ = 0;
};

}  // namespace lockkeeper::redis
