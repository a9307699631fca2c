// Shared locks and semaphores in memory, on one Redis, on version rows of MariaDB and on etcd, beside a mutex
// of the same store in the same run.

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "database_server.h"
#include "etcd_cluster.h"
#include "lockkeeper/etcd/use.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "ratio_report.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

/// The servers, and a manager of each.
class Stores {
 public:
  // Made on the thread that lives longest: the servers die with the one that started them.
  Stores() {
    StoreRegistry registry;
    redis::use(registry);
    etcd::use(registry);
    mysql::use(registry);
    managers_.emplace("memory", registry.open("memory:"));
    managers_.emplace("version", registry.open(versionUri()));
    managers_.emplace("redis", registry.open(redis_.uri()));
    managers_.emplace("etcd", registry.open(etcd_.uri()));
  }
  LockManager& on(const std::string& store) { return managers_.at(store); }

 private:
  std::string versionUri() {
    const std::string uri = mariadb_.uri(mariadb_.newDatabase());
    return "mysql+version" + uri.substr(uri.find("://")) + "?createTable=true";
  }

  test::RedisServer redis_;
  test::DatabaseServer mariadb_{test::Brand::mariadb};
  test::EtcdCluster etcd_;
  std::map<std::string, LockManager> managers_;
};

Stores& stores() {
  static Stores made;
  return made;
}

void mutex(benchmark::State& state, const char* store) {
  LockManager& manager = stores().on(store);
  const std::string key = "order:" + std::to_string(state.thread_index());
  for (auto _ : state) {
    auto held = manager.tryLock(key);
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("the lock was not taken");
  }
}

// Of one key for all threads, beside so many other readers.
void shared(benchmark::State& state, const char* store) {
  LockManager& manager = stores().on(store);
  static std::vector<Lock> others;
  if (state.thread_index() == 0) {
    for (std::int64_t i = 0; i < state.range(0); ++i) others.push_back(manager.lockShared("price"));
  }
  for (auto _ : state) {
    auto held = manager.tryLockShared("price");
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("the share was not taken");
  }
  if (state.thread_index() == 0) others.clear();
}

// One permit of 1,000, so many of which are taken.
void permit(benchmark::State& state, const char* store) {
  Semaphore semaphore(stores().on(store), "export", 1000);
  std::vector<Lock> others;
  for (std::int64_t i = 0; i < state.range(0); ++i) others.push_back(semaphore.acquire());
  for (auto _ : state) {
    auto held = semaphore.tryAcquire();
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("no permit was taken");
  }
}

BENCHMARK_CAPTURE(mutex, redis, "redis")->Threads(1)->Threads(50)->UseRealTime();
BENCHMARK_CAPTURE(shared, redis, "redis")->Arg(0)->Threads(1)->Threads(50)->UseRealTime();
BENCHMARK_CAPTURE(shared, redis, "redis")->Arg(50)->UseRealTime();
BENCHMARK_CAPTURE(permit, redis, "redis")->Arg(0)->Arg(9)->Arg(99)->Arg(999)->UseRealTime();
BENCHMARK_CAPTURE(mutex, memory, "memory")->Threads(1)->UseRealTime();
BENCHMARK_CAPTURE(shared, memory, "memory")->Arg(0)->Arg(50)->UseRealTime();
BENCHMARK_CAPTURE(permit, memory, "memory")->Arg(9)->Arg(999)->UseRealTime();
BENCHMARK_CAPTURE(mutex, version, "version")->Threads(1)->UseRealTime();
BENCHMARK_CAPTURE(shared, version, "version")->Arg(0)->Arg(50)->UseRealTime();
BENCHMARK_CAPTURE(permit, version, "version")->Arg(0)->Arg(9)->Arg(999)->UseRealTime();
BENCHMARK_CAPTURE(mutex, etcd, "etcd")->Threads(1)->UseRealTime();
BENCHMARK_CAPTURE(shared, etcd, "etcd")->Arg(0)->Arg(50)->UseRealTime();
BENCHMARK_CAPTURE(permit, etcd, "etcd")->Arg(9)->Arg(999)->UseRealTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::stores();
  lockkeeper::bench::RatioReport report(
      {{"shared/redis/0/real_time/threads:1", "mutex/redis/real_time/threads:1", 1.2},
       {"shared/redis/50/real_time", "mutex/redis/real_time/threads:1"},
       {"shared/redis/0/real_time/threads:50", "mutex/redis/real_time/threads:50"},
       {"permit/redis/0/real_time", "mutex/redis/real_time/threads:1", 1.2},
       {"permit/redis/99/real_time", "permit/redis/9/real_time"},
       {"permit/redis/999/real_time", "permit/redis/99/real_time", 1.5},
       {"shared/memory/0/real_time", "mutex/memory/real_time/threads:1", 1.2},
       {"shared/memory/50/real_time", "mutex/memory/real_time/threads:1"},
       {"permit/memory/999/real_time", "permit/memory/9/real_time"},
       {"shared/version/0/real_time", "mutex/version/real_time/threads:1", 1.2},
       {"shared/version/50/real_time", "mutex/version/real_time/threads:1"},
       {"permit/version/0/real_time", "mutex/version/real_time/threads:1", 1.2},
       {"permit/version/999/real_time", "permit/version/9/real_time", 1.5},
       {"shared/etcd/0/real_time", "mutex/etcd/real_time/threads:1", 1.2},
       {"shared/etcd/50/real_time", "mutex/etcd/real_time/threads:1"},
       {"permit/etcd/999/real_time", "permit/etcd/9/real_time", 1.5}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
