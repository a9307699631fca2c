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
  std::vector<NodeView> views{};  ///< Of those that have answered.
  std::string failure{};          ///< Why one of the others has not; empty when all have.
};

/// Asks the nodes at `addresses` what they know of their cluster, over connections that it closes again.
/// `options` say how to talk to a node. Blocks until `deadline` at most. Throws ConfigError when a node's
/// answer is that it, or our set-up, is wrong.
NodeViews askNodes(const std::vector<NodeAddress>& addresses, std::chrono::nanoseconds patience,
                   const RedisOptions& options, const Environment& environment, Instant deadline);

}  // namespace lockkeeper::redis
