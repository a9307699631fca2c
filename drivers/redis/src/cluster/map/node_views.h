#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/map/slot_map.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redis_options.h"

namespace lockkeeper::redis {

/// What one node knows of its cluster.
struct NodeView {
  NodeAddress node{};
  std::uint64_t epoch = 0;       ///< Higher ones are newer.
  std::uint64_t knownNodes = 0;  ///< Itself included.
  SlotMap map{};
};

/// What some nodes know of their cluster.
struct NodeViews {
  /// A node that does not answer since it, or our set-up for it, is wrong.
  struct Misconfigured {
    NodeAddress node{};
    std::string why{};
  };

  std::vector<NodeView> views{};  ///< Of those that have answered.
  std::vector<Misconfigured> misconfigured{};
  std::string failure{};  ///< Why one of the others has not answered; empty when all have.
};

/// Asks the nodes at `addresses` what they know of their cluster, over connections that it closes again.
/// `options` say how to talk to a node. Blocks until `deadline` at most.
NodeViews askNodes(const std::vector<NodeAddress>& addresses, std::chrono::nanoseconds patience,
                   const RedisOptions& options, const Environment& environment, Instant deadline);

}  // namespace lockkeeper::redis
