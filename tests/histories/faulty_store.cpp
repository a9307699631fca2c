#include "faulty_store.h"

#include <stdexcept>
#include <utility>

#include "database_server.h"
#include "etcd_cluster.h"
#include "fault_proxy.h"
#include "history_keys.h"
#include "redis_cluster.h"
#include "redis_server.h"
#include "redlock_uri.h"
#include "replication_group.h"
#include "sentinel_group.h"
#include "wait_until.h"

namespace lockkeeper::test {

namespace {

using namespace std::chrono_literals;

void require(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string(what) + " did not happen");
}

const std::string createTable = "?createTable=true";

std::string localhost(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

/// A server behind a proxy.
template <class Server>
struct Proxied {
  template <class... Arguments>
  explicit Proxied(Arguments&&... arguments)
      : server(std::forward<Arguments>(arguments)...), proxy(server.port()) {}

  Server server;
  FaultProxy proxy;
};

StoreFault onTheWay(FaultProxy& proxy, std::string name, ProxyFault fault, std::chrono::milliseconds length) {
  return {.name = std::move(name),
          .begin = [&proxy, fault = std::move(fault)] { proxy.set(fault); },
          .length = length,
          .end = [&proxy] { proxy.passThrough(); },
          .hit = [&proxy] { return waitUntil([&] { return proxy.fired() > 0; }, 5s); }};
}

/// What a connection to any server may suffer.
std::vector<StoreFault> networkFaults(FaultProxy& proxy) {
  using Kind = ProxyFault::Kind;
  std::vector<StoreFault> faults;
  faults.push_back(
      onTheWay(proxy, "reply cut", {.kind = Kind::cut, .bytes = 7, .ending = Ending::rst}, 300ms));
  faults.push_back(onTheWay(proxy, "slow", {.kind = Kind::delay, .pause = 150ms}, 1s));
  faults.push_back(onTheWay(proxy, "replies lost", {.kind = Kind::dropReplies}, 1s));
  faults.push_back(onTheWay(proxy, "black hole", {.kind = Kind::blackhole}, 1s));
  faults.push_back({.name = "reset", .begin = [&proxy] { proxy.endConnections(Ending::rst); }});
  return faults;
}

template <class Server>
StoreFault pauseOf(Server& server, std::chrono::milliseconds length = 700ms) {
  return {.name = "server paused",
          .begin = [&server] { server.pause(); },
          .length = length,
          .end = [&server] { server.resume(); }};
}

template <class Server>
StoreFault restartOf(Server& server) {
  return {.name = "restart",
          .begin = [&server] { server.kill(); },
          .length = 300ms,
          .end = [&server] { server.restart(); }};
}

FaultyStore redis(const std::string& scheme, const std::string& query, bool fences) {
  // Nothing is lost when it is killed.
  const RedisOptions durable = {.arguments = {"--appendonly", "yes", "--appendfsync", "always"}};
  const auto parts = std::make_shared<Proxied<RedisServer>>(durable);
  std::vector<StoreFault> faults = networkFaults(parts->proxy);
  faults.push_back(pauseOf(parts->server));
  faults.push_back(restartOf(parts->server));
  return {scheme + "://" + localhost(parts->proxy.port()) + "/0" + query, fences, std::move(faults), parts};
}

// Nodes that start empty must not vote until what they had granted has ended: one of five at a time.
FaultyStore redlock() {
  const auto nodes = std::make_shared<std::array<RedisServer, 5>>();
  std::vector<StoreFault> faults;
  faults.push_back(pauseOf(nodes->at(0)));
  faults.push_back(restartOf(nodes->at(1)));
  return {redlockUri(*nodes, "restartGuard=" + std::to_string(historyTtl.count()) + "s"), false,
          std::move(faults), nodes};
}

// Grants count when both replicas have them, so that either may be promoted.
FaultyStore sentinel() {
  const auto group = std::make_shared<SentinelGroup>();
  std::vector<StoreFault> faults;
  faults.push_back({.name = "failover",
                    .begin = [&group = *group] { group.first().kill(); },
                    .end =
                        [&group = *group] {
                          group.awaitFailover();
                          group.first().restart();
                        }});
  return {group->uri("minReplicas=2"), true, std::move(faults), group};
}

FaultyStore cluster() {
  const auto nodes = std::make_shared<RedisCluster>();
  std::vector<StoreFault> faults;
  faults.push_back({.name = "slots move", .begin = [&cluster = *nodes] {
                      for (const char* const key : historyKeys) {
                        const std::uint16_t slot = RedisCluster::slotOf(key);
                        const std::size_t from = cluster.masterOf(slot, 0);
                        cluster.move(slot, from, (from + 1) % 3);
                      }
                    }});
  faults.push_back({.name = "replica killed",
                    .begin = [&cluster = *nodes] { cluster.kill(3); },
                    .length = 300ms,
                    .end = [&cluster = *nodes] { cluster.restart(3); }});
  return {nodes->uri(), true, std::move(faults), nodes};
}

// A connection that breaks loses its locks, which GET_LOCK does not hide: the network stays as it is.
FaultyStore getLock() {
  const auto server = std::make_shared<DatabaseServer>(Brand::mariadb);
  std::vector<StoreFault> faults;
  faults.push_back(pauseOf(*server));
  return {"mysql+getlock" + server->uri(server->newDatabase()).substr(5) + createTable, true,
          std::move(faults), server};
}

FaultyStore versionRows() {
  const auto parts = std::make_shared<Proxied<DatabaseServer>>(Brand::mariadb);
  std::vector<StoreFault> faults = networkFaults(parts->proxy);
  faults.push_back(pauseOf(parts->server));
  faults.push_back(restartOf(parts->server));
  faults.push_back(
      {.name = "sessions killed", .begin = [&server = parts->server] { server.killSessions(); }});
  return {"mysql+version" + DatabaseServer::uri(parts->server.newDatabase(), parts->proxy.port()).substr(5) +
              createTable,
          true, std::move(faults), parts};
}

FaultyStore sqlGroup() {
  const auto group = std::make_shared<ReplicationGroup>();
  const auto dead = std::make_shared<std::size_t>(0);
  std::vector<StoreFault> faults;
  faults.push_back({.name = "primary killed",
                    .begin =
                        [&group = *group, dead] {
                          *dead = group.primary();
                          group.node(*dead).kill();
                        },
                    .end =
                        [&group = *group, dead] {
                          require(waitUntil([&] { return group.primary() != *dead; }), "the election");
                          group.rejoin(*dead);
                          group.awaitAll();
                        }});
  faults.push_back({.name = "primary changed", .begin = [&group = *group] {
                      group.makePrimary((group.primary() + 1) % ReplicationGroup::size);
                    }});
  return {group->uri("mysql+version", group->newDatabase()) + createTable, true, std::move(faults), group};
}

FaultyStore etcd() {
  const auto nodes = std::make_shared<EtcdCluster>();
  const auto node = std::make_shared<std::size_t>(0);
  std::vector<StoreFault> faults;
  faults.push_back({.name = "leader killed",
                    .begin =
                        [&cluster = *nodes, node] {
                          *node = cluster.leader();
                          cluster.kill(*node);
                        },
                    .length = 2s,
                    .end = [&cluster = *nodes, node] { cluster.start(*node); }});
  faults.push_back({.name = "leader paused",
                    .begin =
                        [&cluster = *nodes, node] {
                          *node = cluster.leader();
                          cluster.pause(*node);
                        },
                    .length = 3s,
                    .end = [&cluster = *nodes, node] { cluster.resume(*node); }});
  return {nodes->uri(), true, std::move(faults), nodes};
}

constexpr StoreKind kinds[] = {
    {"Redis", [] { return redis("redis", "", true); }},
    {"Legacy", [] { return redis("redis+legacy", "?keyPrefix=history:", false); }},
    {"Redlock", redlock},
    {"Sentinel", sentinel},
    {"Cluster", cluster},
    {"GetLock", getLock},
    {"VersionRows", versionRows},
    {"SqlGroup", sqlGroup},
    {"Etcd", etcd},
};

}  // namespace

std::span<const StoreKind> storeKinds() { return kinds; }

}  // namespace lockkeeper::test
