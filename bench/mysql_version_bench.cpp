// Version rows through the whole of core, beside bare conditional UPDATEs on the same server in the same run.

#include <benchmark/benchmark.h>

#include "database_server.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "ratio_report.h"
#include "raw_rows.h"

namespace lockkeeper {
namespace {

test::DatabaseServer& server() {
  static test::DatabaseServer started(test::Brand::mariadb);
  return started;
}

const std::string& database() {
  static const std::string made = server().newDatabase();
  return made;
}

LockManager& manager() {
  static LockManager made = [] {
    StoreRegistry registry;
    mysql::use(registry);
    const std::string uri = server().uri(database());
    return LockManager(
        registry.open("mysql+version" + uri.substr(uri.find("://")) + "?createTable=true&connections=16"));
  }();
  return made;
}

std::string keyOf(const benchmark::State& state) { return "order:" + std::to_string(state.thread_index()); }

void bareUpdates(benchmark::State& state) {
  bench::RawRows row(server().port(), database(), keyOf(state));
  for (auto _ : state) row.pair();
  state.SetItemsProcessed(state.iterations());
}

void versionRows(benchmark::State& state) {
  LockManager& locks = manager();
  const std::string key = keyOf(state);
  for (auto _ : state) {
    auto held = locks.tryLock(key);
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("the lock was not taken");
  }
  state.SetItemsProcessed(state.iterations());
}

void oneHotRow(benchmark::State& state) {
  LockManager& locks = manager();
  LockOptions options;
  options.waitFor = std::chrono::minutes{1};
  for (auto _ : state) auto held = locks.lock("hot", options);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(bareUpdates)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(versionRows)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(oneHotRow)->Threads(16)->UseRealTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::server();  // on the thread that lives longest: the server dies with the one that started it
  lockkeeper::database();
  const std::string one = "/real_time/threads:1", sixteen = "/real_time/threads:16";
  lockkeeper::bench::RatioReport report({{"versionRows" + one, "bareUpdates" + one, 1.25},
                                         {"versionRows" + sixteen, "bareUpdates" + sixteen, 1.25}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
