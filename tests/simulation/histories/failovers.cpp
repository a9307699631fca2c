#include "simulation/histories/failovers.h"

#include <algorithm>
#include <memory>

namespace lockkeeper::simulation {
namespace {

constexpr std::uint32_t firstSentinel = 0x0A000101;  // 10.0.1.1

}  // namespace

void arrangeSentinels(Scene& scene) {
  scene.nodes[1]->replication().follow(&scene.nodes[0]->replication());
  for (std::uint32_t i = 0; i < 3; ++i)
    scene.sentinels.push_back(
        std::make_unique<SentinelNode>(scene.network, firstSentinel + i, *scene.nodes[0]));
}

void arrangeCluster(Scene& scene) {
  scene.cluster = std::make_unique<Cluster>(scene.scheduler, scene.nodes, scene.scheduler.chance()());
}

TroubleOfReplicas::Failover TroubleOfReplicas::chooseFailover(bool crash, Time until) {
  const bool lags = chance_.happens(0.5);
  const bool fast = chance_.happens(0.5);
  const auto lag = static_cast<Time>(chance_.upTo(second / 4));
  const auto length = static_cast<Time>(chance_.upTo(fast ? second / 10 : second));
  return {.crash = crash, .lag = lags ? lag : 0, .length = length, .until = until};
}

// The former master takes itself for one until it is told.
void TroubleOfReplicas::failover(RedisNode& former, const Failover& how, const std::function<void()>& promote,
                                 const std::function<void()>& demote) {
  if (changes_) return;
  changes_ = true;
  Scheduler& scheduler = scene_.scheduler;
  const Time ends = scheduler.now() + how.lag;
  former.replication().hold(ends);
  scheduler.at(ends, [this, &former, how] {
    scene_.scheduler.trace("network", [&] {
      return former.name() + (how.crash ? " ends" : " is cut off from the other servers");
    });
    former.replication().cutOff();
    if (!how.crash) return;
    former.restart(false);
    former.stopUntil(how.until);
  });
  scheduler.at(ends + how.length, [this, &former, promote] {
    scene_.scheduler.trace("network", [&] { return "the replica of " + former.name() + " takes over"; });
    promote();
  });
  scheduler.at(std::max(how.until, ends + how.length) + how.length, [this, &former, how, demote] {
    scene_.scheduler.trace("network", [&] { return former.name() + " becomes a replica"; });
    demote();
    // Its clients stay connected to it at times.
    if (how.length % 2 == 0) former.disconnect();
    changes_ = false;
  });
}

Trouble::Fault TroubleOfSentinels::choose(int process, Time until) {
  const std::uint64_t what = chance_.upTo(7);
  RedisNode& node = *scene_.nodes[chance_.upTo(scene_.nodes.size() - 1)];
  const SentinelNode& sentinel = *scene_.sentinels[chance_.upTo(scene_.sentinels.size() - 1)];
  const Failover how = chooseFailover(what < 6, until);
  switch (what) {
    case 0:
      return pauseOf(process, until);
    case 1:
      return silenceOf(process, node, until);
    case 2:
      return silenceOf(process, "a sentinel", sentinel.ip(), until);
    case 3:
      return restartOf(node, false, 0);
    case 4:
      return [&node, until] { node.replication().hold(until); };
    default:
      return [this, how] { failover(how); };
  }
}

void TroubleOfSentinels::failover(const Failover& how) {
  const bool swapped = scene_.nodes[0]->replication().isReplica();
  RedisNode& former = *scene_.nodes[swapped ? 1 : 0];
  RedisNode& master = *scene_.nodes[swapped ? 0 : 1];
  const auto promote = [this, &master, how] {
    master.replication().follow(nullptr);
    Time at = scene_.scheduler.now();
    for (const auto& each : scene_.sentinels) {
      scene_.scheduler.at(at, [&sentinel = *each, &master] { sentinel.setMaster(master); });
      at += how.length / 2;
    }
  };
  TroubleOfReplicas::failover(former, how, promote,
                              [&former, &master] { former.replication().follow(&master.replication()); });
}

Trouble::Fault TroubleOfCluster::choose(int process, Time until) {
  const std::uint64_t what = chance_.upTo(8);
  RedisNode& node = *scene_.nodes[chance_.upTo(scene_.nodes.size() - 1)];
  const char* const key = chance_.happens(0.5) ? "a" : "b";
  const std::size_t shard = chance_.upTo(scene_.cluster->shards() - 1);
  const Failover how = chooseFailover(what == 7, until);
  switch (what) {
    case 0:
      return pauseOf(process, until);
    case 1:
      return silenceOf(process, node, until);
    case 2:
      return restartOf(node, false, 0);
    case 3:
      return [&node, until] { node.replication().hold(until); };
    case 4:
    case 5:
    case 6:
      return [this, key, shard, until] { move(key, shard, until); };
    default:
      return [this, key, how] {
        Cluster& cluster = *scene_.cluster;
        const std::size_t its = cluster.table().shardOf(slotOf(key));
        failover(
            *cluster.table().shards[its].master, how, [&cluster, its] { cluster.promote(its); },
            [&cluster, its] { cluster.demote(its); });
      };
  }
}

void TroubleOfCluster::move(const std::string& key, std::size_t to, Time until) {
  const std::uint16_t slot = slotOf(key);
  Cluster& cluster = *scene_.cluster;
  if (changes_ || cluster.table().shardOf(slot) == to) return;
  changes_ = true;
  scene_.scheduler.trace(
      [&] { return "the slot of " + key + " moves to " + cluster.table().shards[to].master->name(); });
  cluster.move(slot, to, until - scene_.scheduler.now());
  scene_.scheduler.at(until, [this] { changes_ = false; });
}

}  // namespace lockkeeper::simulation
