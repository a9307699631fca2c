#include <memory>
#include <sstream>

#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "redis_cluster.h"
#include "redis_stores.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;

namespace {

constexpr std::size_t masters = 3;

// As in redis_stores.cpp.
constexpr const char* addWaiterOfOneKey =
    "redis.call('ZADD', KEYS[1], 1, 'dead') "
    "redis.call('HSET', KEYS[2], 'dead', string.format('%.0f 1 1000 0 ', redis.call('TIME')[1] * 1000 + "
    "4000)) "
    "return 1";

std::size_t queuedAt(const RedisServer& node) {
  std::istringstream queues(node.command({"KEYS", "*:lockkeeper:queue*"}));
  std::size_t count = 0;
  for (std::string queue; std::getline(queues, queue);) count += std::stoul(node.command({"ZCARD", queue}));
  return count;
}

std::size_t requestsOf(const RedisServer& node) {
  const std::string info = node.command({"INFO", "commandstats"});
  const std::string field = "cmdstat_evalsha:calls=";
  const std::size_t at = info.find(field);
  return at == std::string::npos ? 0 : std::stoul(info.substr(at + field.size()));
}

}  // namespace

std::vector<DriverFactory> clusterStores() {
  // Started when it is asked for.
  const auto cluster = [shared = std::make_shared<std::unique_ptr<RedisCluster>>()]() -> RedisCluster& {
    // No node fails here: one that the machine holds up for a second must not count as failed.
    if (!*shared) {
      *shared = std::make_unique<RedisCluster>(
          masters, 0, RedisOptions{.arguments = {"--cluster-node-timeout", "10000"}});
    }
    return **shared;
  };
  const auto sum = [cluster](std::size_t (*of)(const RedisServer&)) {
    std::size_t count = 0;
    for (std::size_t node = 0; node < masters; ++node) count += of(cluster().node(node));
    return count;
  };
  DriverFactory factory{.name = "Cluster",
                        .open =
                            [cluster] {
                              StoreRegistry registry;
                              redis::use(registry);
                              return registry.open(withLongTimeouts(cluster().uri()));
                            },
                        .fence = FencePromise::whileStoreKeepsWrites,
                        .waitable = true,
                        .browsable = true,
                        .breakable = true,
                        .postable = true,
                        .permits = true,
                        .batchable = true,
                        .showsWaiters = true};
  factory.queued = [sum] { return sum(queuedAt); };
  factory.placeKeptFor = std::chrono::seconds{5};
  factory.requests = [sum] { return sum(requestsOf); };
  factory.addDeadWaiter = [cluster](const std::string& key) {
    const std::size_t node = RedisCluster::slotOf(key) * masters / RedisCluster::slots;
    cluster().node(node).command({"EVAL", addWaiterOfOneKey, "2", "{" + key + "}:lockkeeper:queue",
                                  "{" + key + "}:lockkeeper:waiters"});
  };
  factory.endWakeUps = [cluster] {
    for (std::size_t node = 0; node < masters; ++node) {
      cluster().node(node).command({"CLIENT", "KILL", "TYPE", "pubsub"});
    }
  };
  factory.longestPause = std::chrono::seconds{6};
  return {factory};
}

}  // namespace lockkeeper::test
