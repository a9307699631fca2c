#pragma once

#include <span>
#include <vector>

#include "cluster/node_parts.h"
#include "lockkeeper/redis/redis_driver.h"

namespace lockkeeper::redis {

/// Claims of several keys that are in several slots of a cluster: all masters are asked before the first one
/// is waited for, by one request with a script for each slot. Thread-safe.
///
/// So keys behind a busy one may be granted for a moment, out of the order in which everybody takes them.
/// They are given back before the outcome is told: nobody waits for a key while it has one behind that.
class SpreadClaims {
 public:
  SpreadClaims(Topology& topology, NodeParts<RedisDriver>& nodes, std::chrono::milliseconds ioTimeout,
               Clock& clock)
      : topology_(topology), nodes_(nodes), ioTimeout_(ioTimeout), clock_(clock) {}

  /// As Batchable::acquireInOrder(), but it does not go on, nor throw, where a master is unavailable or
  /// another one has the slot by now: then the results, which may be none, end before its first key.
  std::vector<AcquireResult> acquire(std::span<const AcquireRequest> requests);

 private:
  struct Group;
  class GivenBack;

  std::vector<Group> send(std::span<const AcquireRequest> requests);
  void giveBack(std::span<const Claim> claims);

  Topology& topology_;
  NodeParts<RedisDriver>& nodes_;
  const std::chrono::milliseconds ioTimeout_;
  Clock& clock_;
};

}  // namespace lockkeeper::redis
