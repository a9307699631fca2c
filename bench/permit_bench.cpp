// Shares and permits beside a mutex of the same store, in the same run: in memory, on one Redis, beside a
// bare script, too, on version rows of MariaDB and PostgreSQL, and on etcd.

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bare_redis.h"
#include "contest.h"
#include "database_server.h"
#include "etcd_cluster.h"
#include "lockkeeper/etcd/use.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

// Of what is held all the time: its renewals must not be measured.
constexpr std::chrono::minutes longTime{10};

bench::Way permits(std::string name, Semaphore& semaphore) {
  return {std::move(name), [&semaphore](int) {
            return [&semaphore] {
              auto held = semaphore.tryAcquire();
              if (!held || held->release() != ReleaseResult::released)
                throw std::runtime_error("no permit was taken");
            };
          }};
}

bench::Way shares(std::string name, LockManager& locks, std::string key) {
  return {std::move(name), [&locks, key = std::move(key)](int) {
            return [&locks, key] {
              auto held = locks.tryLockShared(key);
              if (!held || held->release() != ReleaseResult::released)
                throw std::runtime_error("the share was not taken");
            };
          }};
}

/// Of the store's servers, and where there is none of this process, a share and a permit may cost so many
/// times what a mutex does. With 16 threads that is compared if there are bare ways.
void compare(bench::Contest contest, LockManager locks, double atMost, bool servers,
             const std::vector<bench::Way>& bare = {}) {
  const LockOptions options{.ttl = longTime};
  std::vector<Lock> others;
  for (int i = 0; i < 50; ++i) others.push_back(locks.lockShared("crowded", options));
  Semaphore empty(locks, "empty", 1000), tenth(locks, "tenth", 1000, options),
      full(locks, "full", 1000, options);
  for (int i = 0; i < 99; ++i) others.push_back(tenth.acquire());
  for (int i = 0; i < 999; ++i) others.push_back(full.acquire());

  const std::string mutex = "a mutex";
  const auto goal = [&](const char* ours, const std::string& beside, double wanted) {
    return bench::Goal{.ours = ours,
                       .beside = beside,
                       .server = servers ? std::optional(wanted) : std::nullopt,
                       .client = servers ? std::nullopt : std::optional(wanted)};
  };
  contest.measure(
      1,
      {bench::pairs(mutex, locks), shares("a share", locks, "price"),
       shares("a share beside 50", locks, "crowded"), permits("a permit", empty),
       permits("a permit, 99 of 1,000 taken", tenth), permits("a permit, 999 of 1,000 taken", full)},
      {goal("a share", mutex, atMost), goal("a share beside 50", mutex, bench::shown),
       goal("a permit", mutex, atMost),
       goal("a permit, 999 of 1,000 taken", "a permit, 99 of 1,000 taken", 1.5)});
  if (bare.empty()) return;
  std::vector<bench::Way> ways{bench::pairs(mutex, locks), shares("a share", locks, "price"),
                               permits("a permit", empty)};
  ways.insert(ways.end(), bare.begin(), bare.end());
  std::vector<bench::Goal> goals{goal("a share", mutex, atMost), goal("a permit", mutex, atMost)};
  for (bench::Goal& each : goals) {
    for (const bench::Way& way : bare) each.bare.push_back(way.name);
  }
  contest.measure(16, ways, goals);
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  const test::RedisServer redis;
  test::DatabaseServer mariadb(test::Brand::mariadb);
  test::PostgresServer postgres;
  postgres.makeLocks();
  const test::EtcdCluster etcd;
  StoreRegistry registry;
  redis::use(registry);
  etcd::use(registry);
  mysql::use(registry);
  postgres::use(registry);
  const std::string rows = mariadb.uri(mariadb.newDatabase());
  const auto contest = [&](const char* store, const char* servers) {
    return bench::Contest(std::string("permit, ") + store, servers, count, arguments);
  };
  using bench::bareWay, bench::Connections, bench::Promise;
  compare(contest("redis", "redis-server"), LockManager(registry.open(redis.uri())), 1.3, true,
          {bareWay("bare, same promise", redis.port(), Promise::share, Connections::oneForEachThread),
           bareWay("bare, one connection", redis.port(), Promise::share, Connections::oneForAll)});
  compare(contest("memory", ""), LockManager(registry.open("memory:")), 1.2, false);
  compare(contest("mysql+version", "mariadbd"),
          LockManager(registry.open("mysql+version" + rows.substr(rows.find("://")) + "?createTable=true")),
          1.2, true);
  compare(contest("postgres+version", "bin/postgres"),
          LockManager(registry.open(postgres.uri("postgres+version"))), 1.2, true);
  compare(contest("etcd", "etcd"), LockManager(registry.open(etcd.uri())), 1.2, true);
  return 0;
}
