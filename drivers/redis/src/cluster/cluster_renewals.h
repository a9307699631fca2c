#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cluster/topology.h"
#include "lock/node/lock_node.h"

namespace lockkeeper::redis {

/// Renews leases at all masters that have them. Thread-safe.
class ClusterRenewals {
 public:
  explicit ClusterRenewals(Topology<LockNode>& nodes) : map_(nodes.map()), nodes_(nodes) {}

  /// As LockDriver::renew(). The nodes are asked at the same time, on threads that end with the call; what
  /// one has answered is told at once, whatever becomes of those that it has sent elsewhere.
  void renew(std::span<Renewal> renewals, Instant deadline);

 private:
  class Round;

  using Stop = std::pair<NodeAddress, bool>;  // the node, and whether the slot is on its way to it
  using Group = std::vector<Renewal*>;
  using Groups = std::map<Stop, Group>;

  std::optional<Stop> onward(const Stop& stop, const Renewal& renewal,
                             const std::optional<Redirect>& redirect, Instant deadline);

  ClusterMap& map_;
  Topology<LockNode>& nodes_;
};

}  // namespace lockkeeper::redis
