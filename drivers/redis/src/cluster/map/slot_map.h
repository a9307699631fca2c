#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wire/protocol/redirect.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// Which master has which slot of a Redis Cluster, as one of its nodes has said.
class SlotMap {
 public:
  static constexpr std::size_t slots = 16384;

  /// From the reply to CLUSTER SLOTS of the node at `asked`; empty when it has another form. A node of which
  /// no address is known counts as not there.
  static std::optional<SlotMap> read(const Reply& reply, const NodeAddress& asked);

  /// Null when the slot has none.
  const NodeAddress* master(std::uint16_t slot) const;
  void assign(std::uint16_t slot, const NodeAddress& master);

  /// Those that have slots.
  const std::set<NodeAddress>& masters() const { return masters_; }
  /// With their replicas, and those that have had slots.
  const std::set<NodeAddress>& nodes() const { return nodes_; }
  /// The names of all nodes, by which a cluster is told from another one.
  const std::set<std::string>& ids() const { return ids_; }

  bool sameMastersAs(const SlotMap& other) const;

 private:
  static constexpr std::uint16_t nobody = 0xFFFF;

  bool readRange(const Reply& range, const NodeAddress& asked);
  std::uint16_t placeOf(const NodeAddress& master);
  void findMasters();

  std::vector<NodeAddress> places_{};
  std::vector<std::uint16_t> bySlot_ = std::vector<std::uint16_t>(slots, nobody);  // places
  std::set<NodeAddress> masters_{};
  std::set<NodeAddress> nodes_{};
  std::set<std::string> ids_{};
};

}  // namespace lockkeeper::redis
