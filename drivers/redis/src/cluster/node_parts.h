#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cluster/journey.h"

namespace lockkeeper::redis {

/// An object for each master of a cluster, such as its RedisDriver, made when it is first needed. Those of
/// nodes that are masters no longer are dropped, and so end their connections, when their last call has
/// ended; with them go those for slots on their way. Thread-safe.
template <class Part>
class NodeParts {
 public:
  using Make = std::function<std::shared_ptr<Part>(RedisOptions node)>;
  using Parts = std::vector<std::shared_ptr<Part>>;
  /// Called with the parts that are dropped.
  using Drop = std::function<void(const Parts& parts)>;

  NodeParts(Topology& topology, RedisOptions node, Make make, Drop drop = {})
      : topology_(topology), node_(std::move(node)), make_(std::move(make)), drop_(std::move(drop)) {}

  /// Calls `call` with the part of the slot's master, and again with another one while redirects lead there.
  template <class Call>
  auto at(std::uint16_t slot, Instant deadline, Call&& call) {
    Journey journey(topology_, slot, deadline);
    while (true) {
      const std::shared_ptr<Part> part = of(journey.node(), journey.importing());
      try {
        return call(*part);
      } catch (const Error& error) {
        journey.follow(error);
      }
    }
  }

  /// `importing`: for slots that are on their way to the node. A caller with an old route, to a node that is
  /// no master any more, gets a part that is not kept.
  std::shared_ptr<Part> of(const NodeAddress& address, bool importing) {
    dropOthers();
    const std::lock_guard guard(mutex_);
    const auto found = parts_.find({address, importing});
    if (found != parts_.end()) return found->second;
    RedisOptions options = node_;
    options.host = address.host;
    options.port = address.port;
    options.cluster = importing ? ClusterUse::importingNode : ClusterUse::node;
    std::shared_ptr<Part> part = make_(std::move(options));
    if (importing || topology_.isMaster(address)) parts_.emplace(std::pair(address, importing), part);
    return part;
  }

  /// Calls `post`, which says whether it has begun something that `Drop` waits for, with the master's part,
  /// if there is one already. A part that is dropped meanwhile is handed to `Drop` once more.
  template <class Post>
  bool post(const NodeAddress& address, Post&& post) {
    const std::shared_ptr<Part> part = existing(address);
    if (!part || !post(*part)) return false;
    if (drop_ && existing(address) != part) drop_({part});
    return true;
  }

  /// Those of masters.
  Parts all() const {
    const std::lock_guard guard(mutex_);
    Parts parts;
    for (const auto& [place, part] : parts_) {
      if (!place.second) parts.push_back(part);
    }
    return parts;
  }

 private:
  void dropOthers() {
    const std::uint64_t version = topology_.version();
    Parts dropped;
    {
      const std::lock_guard guard(mutex_);
      if (version == version_) return;
      version_ = version;
      std::erase_if(parts_, [&](auto& each) {
        const auto& [address, importing] = each.first;
        if (!importing && topology_.isMaster(address)) return false;
        dropped.push_back(std::move(each.second));
        return true;
      });
    }
    if (drop_ && !dropped.empty()) drop_(dropped);
  }

  std::shared_ptr<Part> existing(const NodeAddress& address) const {
    const std::lock_guard guard(mutex_);
    const auto found = parts_.find({address, false});
    return found == parts_.end() ? nullptr : found->second;
  }

  Topology& topology_;
  const RedisOptions node_;
  const Make make_;
  const Drop drop_;

  mutable std::mutex mutex_;
  std::map<std::pair<NodeAddress, bool>, std::shared_ptr<Part>> parts_;  // by address and `importing`
  std::uint64_t version_ = 0;
};

}  // namespace lockkeeper::redis
