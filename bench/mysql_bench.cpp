// GET_LOCK through the whole of core, beside the same statements in a bare loop of the client library, on the
// same server in the same run.

#include <benchmark/benchmark.h>

#include <map>
#include <mutex>

#include "database_server.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "ratio_report.h"
#include "raw_getlock.h"

namespace lockkeeper {
namespace {

// Without a flush at each commit, so that the disk does not drown what is compared.
test::DatabaseServer& server() {
  static test::DatabaseServer started(test::Brand::mariadb, {"--innodb-flush-log-at-trx-commit=0"});
  return started;
}

const std::string& database() {
  static const std::string name = server().newDatabase();
  return name;
}

// One for each set of URI parameters, for all threads.
LockManager& manager(const std::string& parameters) {
  static std::map<std::string, LockManager> managers;
  static std::mutex mutex;
  const std::lock_guard guard(mutex);
  const auto found = managers.find(parameters);
  if (found != managers.end()) return found->second;
  StoreRegistry registry;
  mysql::use(registry);
  const std::string uri = server().uri(database());
  return managers
      .try_emplace(parameters, registry.open("mysql+getlock" + uri.substr(uri.find("://")) + parameters))
      .first->second;
}

std::string keyOf(const benchmark::State& state) { return "order:" + std::to_string(state.thread_index()); }

void raw(benchmark::State& state, void (bench::RawGetLock::*pair)(const std::string&)) {
  bench::RawGetLock session(server().port(), database());
  const std::string key = "raw:" + keyOf(state);
  for (auto _ : state) (session.*pair)(key);
  state.SetItemsProcessed(state.iterations());
}

void sameStatements(benchmark::State& state, void (bench::RawGetLock::*pair)(const std::string&)) {
  raw(state, pair);
}

void pairs(benchmark::State& state, const std::string& parameters) {
  LockManager& locks = manager(parameters);
  const std::string key = keyOf(state);
  for (auto _ : state) {
    auto held = locks.tryLock(key);
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("the lock was not taken");
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(raw, plain, &bench::RawGetLock::pair)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK_CAPTURE(raw, fenced, &bench::RawGetLock::fencedPair)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK_CAPTURE(sameStatements, plain, &bench::RawGetLock::checkedPair)
    ->Threads(1)
    ->Threads(16)
    ->UseRealTime();
BENCHMARK_CAPTURE(pairs, plain, "?fence=off")->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK_CAPTURE(pairs, fenced, "?createTable=true")->Threads(1)->Threads(16)->UseRealTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::database();  // on the thread that lives longest: the server dies with the one that started it
  const std::string one = "/real_time/threads:1", sixteen = "/real_time/threads:16";
  lockkeeper::bench::RatioReport report({{"pairs/plain" + one, "raw/plain" + one, 1.25},
                                         {"pairs/fenced" + one, "raw/fenced" + one, 1.25},
                                         {"pairs/plain" + sixteen, "raw/plain" + sixteen, 1.25},
                                         {"pairs/plain" + sixteen, "sameStatements/plain" + sixteen},
                                         {"sameStatements/plain" + sixteen, "raw/plain" + sixteen},
                                         {"pairs/fenced" + sixteen, "raw/fenced" + sixteen, 1.25}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
