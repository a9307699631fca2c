// One pair of acquire and release, on every store, in one run: what the choice of a store costs.

#include <string>
#include <utility>
#include <vector>

#include "contest.h"
#include "database_server.h"
#include "etcd_cluster.h"
#include "lockkeeper/etcd/use.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "redis_cluster.h"
#include "redis_server.h"
#include "redlock_uri.h"
#include "sentinel_group.h"

namespace lockkeeper {
namespace {

constexpr int redlockNodes = 3;

/// Servers of all kinds. The data of MariaDB and etcd are files in memory, and PostgreSQL waits for no disk:
/// a disk adds its own time to each of their commits.
class Servers {
 public:
  Servers() { postgres_.makeLocks(); }

  std::vector<std::pair<std::string, std::string>> uris() {
    const std::string uri = database_.uri(database_.newDatabase());
    const std::string place = uri.substr(uri.find("://"));
    return {{"redis", "redis://127.0.0.1:" + std::to_string(redis_.port())},
            {"redis+sentinel", sentinels_.uri()},
            {"redis+cluster", cluster_.uri()},
            {"redlock", test::redlockUri(nodes_, "restartGuard=off")},
            {"mysql+getlock", "mysql+getlock" + place + "?createTable=true"},
            {"mysql+version", "mysql+version" + place + "?createTable=true"},
            {"postgres+version", postgres_.uri("postgres+version")},
            {"etcd", etcd_.uri()},
            {"memory", "memory:"}};
  }

 private:
  test::RedisServer redis_;
  test::SentinelGroup sentinels_;
  test::RedisCluster cluster_{3, 0};
  test::RedisServer nodes_[redlockNodes];
  test::DatabaseServer database_{test::Brand::mariadb};
  test::PostgresServer postgres_;
  test::EtcdCluster etcd_;
};

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  Servers servers;
  StoreRegistry stores;
  redis::use(stores);
  mysql::use(stores);
  postgres::use(stores);
  etcd::use(stores);
  const auto uris = servers.uris();
  std::vector<LockManager> managers;
  managers.reserve(uris.size());
  std::vector<bench::Way> ways;
  std::vector<bench::Goal> goals;
  for (const auto& [name, uri] : uris) {
    ways.push_back(bench::pairs(name, managers.emplace_back(stores.open(uri))));
    goals.push_back({.ours = name, .beside = "redis", .client = bench::shown, .time = bench::shown});
  }
  bench::Contest contest("stores", "", count, arguments);
  contest.measure(1, ways, goals);
  return 0;
}
