#pragma once

#include <chrono>
#include <memory>

#include "cluster/map/cluster_map.h"
#include "lockkeeper/error.h"

namespace lockkeeper::redis {

/// So many redirects in a row are followed, since a node that is behind may send us in a circle.
inline constexpr int mostHops = 5;

/// A call that takes longer has waited: a redirect comes sooner.
inline constexpr std::chrono::milliseconds longCall{100};

/// One call on its way to the node that has its slot. One thread at a time.
class Journey {
 public:
  /// Throws as ClusterMap::route().
  Journey(ClusterMap& map, std::uint16_t slot, Instant deadline);

  const NodeAddress& node() const { return node_; }
  /// The slot is on its way to node(), which serves it only when asked so.
  bool importing() const { return importing_; }

  /// Within the handler of `error`, with which the call to node() has ended: returns when node() is another
  /// one now, and the call is to be repeated there, since it was certainly not applied; otherwise throws.
  /// Follows `mostHops` redirects in a row.
  void follow(const Error& error);

  /// The last call was a long one: the next one has until then, and may be redirected as often as the first.
  void goOn(Instant deadline) {
    deadline_ = deadline;
    hops_ = 0;
  }

 private:
  void redirect(const Redirect& redirect);
  [[noreturn]] void giveUp(const Error& error) const;

  ClusterMap& map_;
  ClusterMap::Route route_;
  Instant deadline_;
  NodeAddress node_;
  bool importing_ = false;
  int hops_ = 0;
};

}  // namespace lockkeeper::redis
