#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "simulation/machine/chance.h"
#include "simulation/machine/scheduler.h"
#include "simulation/redis/node.h"

namespace lockkeeper::simulation {

/// The hash slot of a key or of a sharded channel.
std::uint16_t slotOf(std::string_view key);

/// Which node serves which slot, as it is agreed at one epoch.
struct SlotTable {
  struct Shard {
    RedisNode* master;
    RedisNode* replica;
  };
  std::uint64_t epoch = 1;
  std::vector<Shard> shards{};
  std::map<std::uint16_t, std::size_t>
      starts{};  // the shard that serves from this slot on, up to the next one

  std::size_t shardOf(std::uint16_t slot) const { return std::prev(starts.upper_bound(slot))->second; }
  void assign(std::uint16_t slot, std::size_t shard);
};

/// What one node of a cluster knows of the slots. It may be behind the others.
class ClusterView {
 public:
  ClusterView(RedisNode& self, std::shared_ptr<const SlotTable> table)
      : self_(self), table_(std::move(table)) {}

  /// What it answers to a command on keys that it does not serve.
  std::optional<RedisReply> refusal(const Words& words, bool asking);
  /// To CLUSTER.
  RedisReply answer(const Words& words) const;

  void adopt(std::shared_ptr<const SlotTable> table);
  const SlotTable& table() const noexcept { return *table_; }

  /// Slots on their way, and the node at the other end.
  std::map<std::uint16_t, const RedisNode*> migrating;
  std::map<std::uint16_t, const RedisNode*> importing;

 private:
  bool serves(std::uint16_t slot) const { return table_->shards[table_->shardOf(slot)].master == &self_; }

  RedisNode& self_;
  std::shared_ptr<const SlotTable> table_;
};

/// Masters with a replica each.
class Cluster {
 public:
  /// The second half of the nodes are the replicas of the first half.
  Cluster(Scheduler& scheduler, const std::vector<std::unique_ptr<RedisNode>>& nodes, std::uint64_t seed);

  const SlotTable& table() const noexcept { return *table_; }
  std::size_t shards() const noexcept { return table_->shards.size(); }

  /// The slot goes to that shard, one key after the other. It is there after `length`.
  void move(std::uint16_t slot, std::size_t to, Time length);
  /// The replica of a shard takes over. Its former master, if it can be reached, hears of it by adopt().
  void promote(std::size_t shard);
  /// The former master, now the shard's replica, hears of it.
  void demote(std::size_t shard);

 private:
  void moveKey(std::uint16_t slot, RedisNode& from, RedisNode& to);
  void change(const std::function<void(SlotTable& table)>& how, RedisNode& first, const RedisNode* unreached);

  Scheduler& scheduler_;
  const std::vector<std::unique_ptr<RedisNode>>& nodes_;
  Chance chance_;
  std::shared_ptr<const SlotTable> table_;
};

}  // namespace lockkeeper::simulation
