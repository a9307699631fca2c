#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "redis_server.h"

namespace lockkeeper::test {

/// A real Redis Cluster on this machine: masters with equal parts of the slots, and so many replicas for
/// each. Nodes count as failed after a second unless the options say otherwise. One thread at a time.
class RedisCluster {
 public:
  /// Returns when every node finds the cluster well. Throws std::runtime_error when it cannot be started.
  explicit RedisCluster(std::size_t masters = 3, std::size_t replicasOfEach = 1, RedisOptions node = {});

  static constexpr std::size_t slots = 16384;

  /// The first ones were the masters at the start.
  RedisServer& node(std::size_t index) { return *nodes_[index]; }
  std::size_t size() const { return nodes_.size(); }
  bool runs(std::size_t index) const { return runs_[index]; }
  /// Of the masters at the start, or of as many as are asked for.
  std::string uri(const std::string& query = "", std::size_t seeds = 3) const;

  static std::uint16_t slotOf(const std::string& key);
  /// A key that begins with `beginning` and whose slot the node has.
  std::string keyAt(std::size_t node, const std::string& beginning) const;

  /// The node that is the slot's master, as the node `asked` sees it.
  std::size_t masterOf(std::uint16_t slot, std::size_t asked) const;

  /// A migration of a slot, with its keys, in steps. Nodes are given by their numbers.
  /// @{
  void beginMove(std::uint16_t slot, std::size_t from, std::size_t to);
  void moveKey(const std::string& key, std::size_t from, std::size_t to);
  void moveAllKeys(std::uint16_t slot, std::size_t from, std::size_t to);
  void endMove(std::uint16_t slot, std::size_t to);
  /// All of them.
  void move(std::uint16_t slot, std::size_t from, std::size_t to);
  /// @}

  /// Starts a node without slots that all others know. Returns its number.
  std::size_t addNode();
  /// Makes all others forget the node, and kills it. It must have no slots.
  void removeNode(std::size_t node);

  /// Returns when the cluster is well as all nodes see it that run.
  void awaitWell() const;
  /// Returns when the replicas that run have what the master has written by now.
  void awaitReplicas(std::size_t master) const;
  /// Kills the node.
  void kill(std::size_t node);
  /// Starts it again, in the same place. Returns when it is a well node again.
  void restart(std::size_t node);

 private:
  std::string idOf(std::size_t node) const;
  std::string epochOf(const std::string& id, std::size_t asked) const;
  void meet(std::size_t node);
  bool isWell(std::size_t node) const;

  const RedisOptions options_;
  const std::size_t masters_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::vector<bool> runs_;
};

}  // namespace lockkeeper::test
