#include "faulty_store.h"

#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "child_clock.h"
#include "database_server.h"
#include "etcd_cluster.h"
#include "fault_proxy.h"
#include "history_keys.h"
#include "postgres_server.h"
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

/// For all processes.
auto always(std::string uri) {
  return [uri = std::move(uri)](const std::string&) { return uri; };
}

/// A Redis behind a proxy, with a clock of its own. Nothing is lost when it is killed.
struct ProxiedRedis {
  ChildClock clock;
  RedisServer server{
      {.environment = clock.environment(), .arguments = {"--appendonly", "yes", "--appendfsync", "always"}}};
  FaultProxy proxy{server.port()};
};

struct ProxiedMariadb {
  ChildClock clock;
  DatabaseServer server{Brand::mariadb, {}, clock.environment()};
  FaultProxy proxy{server.port()};
};

struct ProxiedPostgres {
  ChildClock clock;
  PostgresServer server{{}, clock.environment()};
  FaultProxy proxy{server.port()};
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

std::int64_t timeOf(const RedisServer& server) { return std::stoll(server.command({"TIME"})); }
std::int64_t timeOf(const DatabaseServer& server) {
  return std::stoll(server.ask("SELECT UNIX_TIMESTAMP()"));
}

std::int64_t timeOf(const PostgresServer& server) {
  return std::stoll(server.ask("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint"));
}

/// Each time, the server's wall clock is set further from the right time.
template <class Server>
StoreFault clockSet(const ChildClock& clock, const Server& server, std::int64_t seconds) {
  const auto offset = std::make_shared<std::int64_t>(0);
  return {.name = seconds < 0 ? "clock set back" : "clock set ahead",
          .begin = [&clock, offset, seconds] { clock.jump(*offset += seconds); },
          .hit = [&server, offset] { return std::abs(timeOf(server) - std::time(nullptr) - *offset) <= 2; }};
}

/// A server that cannot write down what it has done ends itself before it answers.
template <class Server>
StoreFault diskFull(Server& server) {
  return {.name = "disk full",
          .begin = [&server] { server.fillDisk(); },
          .end = [&server] { server.restart(); },
          .hit = [&server] { return waitUntil([&] { return !server.running(); }, 30s); }};
}

FaultyStore redis(const std::string& scheme, const std::string& query, bool fences, bool queue) {
  const auto parts = std::make_shared<ProxiedRedis>();
  std::vector<StoreFault> faults = networkFaults(parts->proxy);
  faults.push_back(pauseOf(parts->server));
  faults.push_back(restartOf(parts->server));
  faults.push_back(diskFull(parts->server));
  // Ahead, it would end leases.
  faults.push_back(clockSet(parts->clock, parts->server, -3));
  const std::string uri = scheme + "://" + localhost(parts->proxy.port()) + "/0" + query;
  return {always(uri), fences, std::move(faults), parts, queue ? queuesOf(uri) : nullptr};
}

// Nodes that start empty must not vote until what they had granted has ended: one of five at a time.
FaultyStore redlock() {
  struct Parts {
    ChildClock clock;
    std::array<RedisServer, 5> nodes{RedisServer(), RedisServer(),
                                     RedisServer({.environment = clock.environment()}), RedisServer(),
                                     RedisServer()};
  };
  const auto parts = std::make_shared<Parts>();
  std::vector<StoreFault> faults;
  faults.push_back(pauseOf(parts->nodes[0]));
  faults.push_back(restartOf(parts->nodes[1]));
  faults.push_back(clockSet(parts->clock, parts->nodes[2], 3600));
  return {always(redlockUri(parts->nodes, "restartGuard=" + std::to_string(historyTtl.count()) + "s")), false,
          std::move(faults), parts};
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
  const std::string uri = group->uri("minReplicas=2");
  return {always(uri), true, std::move(faults), group, queuesOf(uri)};
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
  return {always(nodes->uri()), true, std::move(faults), nodes, queuesOf(nodes->uri())};
}

// A connection that breaks loses its locks, which GET_LOCK does not hide: the network stays as it is. Each
// process has an account, so that its sessions are known.
FaultyStore getLock() {
  struct Parts {
    ChildClock clock;
    DatabaseServer server{Brand::mariadb, {}, clock.environment()};
  };
  const auto parts = std::make_shared<Parts>();
  const std::shared_ptr<const DatabaseServer> server(parts, &parts->server);
  std::vector<StoreFault> faults;
  faults.push_back(pauseOf(parts->server));
  faults.push_back(clockSet(parts->clock, parts->server, 3600));
  faults.push_back(clockSet(parts->clock, parts->server, -3600));
  const auto uri = [server, database = parts->server.newDatabase()](const std::string& process) {
    const std::string account = "'" + process + "'@'127.0.0.1'";
    server->execute("CREATE USER IF NOT EXISTS " + account + " IDENTIFIED BY '" + process + "'");
    server->execute("GRANT ALL ON " + database + ".* TO " + account);
    return "mysql+getlock://" + process + ":" + process + "@" + localhost(server->port()) + "/" + database +
           createTable;
  };
  return {uri, true, std::move(faults), parts, queuesOf(server)};
}

FaultyStore versionRows() {
  const auto parts = std::make_shared<ProxiedMariadb>();
  std::vector<StoreFault> faults = networkFaults(parts->proxy);
  faults.push_back(pauseOf(parts->server));
  faults.push_back(restartOf(parts->server));
  faults.push_back(
      {.name = "sessions killed", .begin = [&server = parts->server] { server.killSessions(); }});
  faults.push_back(clockSet(parts->clock, parts->server, -3));
  return {
      always("mysql+version" +
             DatabaseServer::uri(parts->server.newDatabase(), parts->proxy.port()).substr(5) + createTable),
      true, std::move(faults), parts};
}

// Nothing is lost when it is killed: the kernel keeps what was written.
FaultyStore postgres() {
  const auto parts = std::make_shared<ProxiedPostgres>();
  parts->server.makeLocks();
  std::vector<StoreFault> faults = networkFaults(parts->proxy);
  faults.push_back(pauseOf(parts->server));
  faults.push_back(restartOf(parts->server));
  faults.push_back({.name = "sessions ended", .begin = [&server = parts->server] { server.endSessions(); }});
  faults.push_back(diskFull(parts->server));
  faults.push_back(clockSet(parts->clock, parts->server, -3));
  return {always(PostgresServer::uri("postgres+version", parts->proxy.port())), true, std::move(faults),
          parts};
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
  return {always(group->uri("mysql+version", group->newDatabase()) + createTable), true, std::move(faults),
          group};
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
  const auto alarm = [&cluster = *nodes](const std::string& action) {
    (void)cluster.request("/v3/maintenance/alarm",
                          R"({"action":")" + action + R"(","memberID":"0","alarm":"NOSPACE"})");
  };
  faults.push_back({.name = "no room",
                    .begin = [alarm] { alarm("ACTIVATE"); },
                    .length = 1s,
                    .end = [alarm] { alarm("DEACTIVATE"); }});
  return {always(nodes->uri()), true, std::move(faults), nodes, queuesOf(nodes)};
}

constexpr StoreKind kinds[] = {
    {"Redis", [] { return redis("redis", "", true, true); }},
    {"Legacy", [] { return redis("redis+legacy", "?keyPrefix=history:", false, false); }},
    {"Redlock", redlock},
    {"Sentinel", sentinel},
    {"Cluster", cluster},
    {"GetLock", getLock},
    {"VersionRows", versionRows},
    {"Postgres", postgres},
    {"SqlGroup", sqlGroup},
    {"Etcd", etcd},
};

}  // namespace

std::span<const StoreKind> storeKinds() { return kinds; }

}  // namespace lockkeeper::test
