// One Redis through the whole of core, beside raw hiredis on the same server in the same run.

#include <benchmark/benchmark.h>

#include <map>
#include <mutex>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "ratio_report.h"
#include "raw_redis.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

using namespace std::chrono_literals;

test::RedisServer& server() {
  static test::RedisServer started;
  return started;
}

// One for each set of URI parameters, for all threads.
LockManager& manager(const std::string& parameters) {
  static std::map<std::string, LockManager> managers;
  static std::mutex mutex;
  const std::lock_guard guard(mutex);
  const auto found = managers.find(parameters);
  if (found != managers.end()) return found->second;
  StoreRegistry registry;
  redis::use(registry);
  return managers.try_emplace(parameters, registry.open(server().uri() + parameters)).first->second;
}

std::string keyOf(const benchmark::State& state) { return "order:" + std::to_string(state.thread_index()); }

void raw(benchmark::State& state) {
  bench::RawRedis redis(server().port());
  const std::string key = keyOf(state);
  for (auto _ : state) redis.pair(key);
  state.SetItemsProcessed(state.iterations());
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

// As a program does that lets its Lock go out of scope.
void posted(benchmark::State& state, const std::string& parameters) {
  LockManager& locks = manager(parameters);
  const std::string key = keyOf(state);
  for (auto _ : state) {
    if (!locks.tryLock(key)) state.SkipWithError("the lock was not taken");
  }
  state.SetItemsProcessed(state.iterations());
}

void oneHotKey(benchmark::State& state, const std::string& parameters) {
  LockManager& locks = manager(parameters);
  LockOptions options;
  options.waitFor = 1min;
  for (auto _ : state) auto held = locks.lock("hot", options);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(raw)->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(pairs, plain, "?fence=off")->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(pairs, fenced, "")->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(posted, plain, "?fence=off")->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(posted, fenced, "")->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(oneHotKey, plain, "?fence=off")->Threads(16)->UseRealTime();
BENCHMARK_CAPTURE(oneHotKey, fenced, "")->Threads(16)->UseRealTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::server();  // on the thread that lives longest: the server dies with the one that started it
  const std::string one = "/real_time/threads:1", sixteen = "/real_time/threads:16",
                    many = "/real_time/threads:64";
  lockkeeper::bench::RatioReport report({{"pairs/plain" + one, "raw" + one, "at most 1.05x"},
                                         {"pairs/fenced" + one, "raw" + one, "at most 1.15x"},
                                         {"posted/plain" + one, "raw" + one, "at most 0.65x"},
                                         {"posted/fenced" + one, "raw" + one, "at most 0.65x"},
                                         {"pairs/plain" + sixteen, "raw" + sixteen, "none"},
                                         {"pairs/fenced" + sixteen, "raw" + sixteen, "none"},
                                         {"posted/plain" + sixteen, "raw" + sixteen, "at most 0.67x"},
                                         {"posted/fenced" + sixteen, "raw" + sixteen, "at most 0.67x"},
                                         {"posted/plain" + many, "raw" + many, "at most 0.5x"},
                                         {"posted/fenced" + many, "raw" + many, "at most 0.5x"}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
