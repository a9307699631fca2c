#pragma once

#include <span>
#include <vector>

#include "cluster/topology.h"
#include "lock/node/lock_node.h"

namespace lockkeeper::redis {

/// Claims of several keys that are in several slots of a cluster: all masters are asked before the first one
/// is waited for, by one request with a script for each slot. Thread-safe.
///
/// So keys behind a busy one may be granted for a moment, out of the order in which everybody takes them.
/// They are given back before the outcome is told: nobody waits for a key while it has one behind that.
class SpreadClaims {
 public:
  SpreadClaims(Topology<LockNode>& nodes, std::chrono::milliseconds ioTimeout, Clock& clock)
      : map_(nodes.map()), nodes_(nodes), ioTimeout_(ioTimeout), clock_(clock) {}

  /// As Batchable::acquireInOrder(), but it does not go on, nor throw, where a master is unavailable or
  /// another one has the slot by now: then the results, which may be none, end before its first key.
  std::vector<AcquireResult> acquire(std::span<const AcquireRequest> requests);

 private:
  struct Group;
  class Releases;

  std::vector<Group> send(std::span<const AcquireRequest> requests);
  void release(std::span<const Claim> claims);

  ClusterMap& map_;
  Topology<LockNode>& nodes_;
  const std::chrono::milliseconds ioTimeout_;
  Clock& clock_;
};

}  // namespace lockkeeper::redis
