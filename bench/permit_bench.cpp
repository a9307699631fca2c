// Shared locks and semaphores on one Redis, beside a mutex in the same run.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "ratio_report.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

test::RedisServer& server() {
  static test::RedisServer started;
  return started;
}

LockManager& manager() {
  static LockManager made([] {
    StoreRegistry registry;
    redis::use(registry);
    return registry.open(server().uri());
  }());
  return made;
}

void mutex(benchmark::State& state) {
  const std::string key = "order:" + std::to_string(state.thread_index());
  for (auto _ : state) {
    auto held = manager().tryLock(key);
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("the lock was not taken");
  }
}

// Of one key for all threads, beside so many other readers.
void shared(benchmark::State& state) {
  static std::vector<Lock> others;
  if (state.thread_index() == 0) {
    for (std::int64_t i = 0; i < state.range(0); ++i) others.push_back(manager().lockShared("price"));
  }
  for (auto _ : state) {
    auto held = manager().tryLockShared("price");
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("the share was not taken");
  }
  if (state.thread_index() == 0) others.clear();
}

// One permit of 1,000, so many of which are taken.
void permit(benchmark::State& state) {
  Semaphore semaphore(manager(), "export", 1000);
  std::vector<Lock> others;
  for (std::int64_t i = 0; i < state.range(0); ++i) others.push_back(semaphore.acquire());
  for (auto _ : state) {
    auto held = semaphore.tryAcquire();
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("no permit was taken");
  }
}

BENCHMARK(mutex)->Threads(1)->Threads(50)->UseRealTime();
BENCHMARK(shared)->Arg(0)->Threads(1)->Threads(50)->UseRealTime();
BENCHMARK(shared)->Arg(50)->UseRealTime();
BENCHMARK(permit)->Arg(0)->Arg(9)->Arg(99)->Arg(999)->UseRealTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::server();  // on the thread that lives longest: the server dies with the one that started it
  lockkeeper::bench::RatioReport report({{"shared/0/real_time/threads:1", "mutex/real_time/threads:1", 1.2},
                                         {"shared/50/real_time", "mutex/real_time/threads:1"},
                                         {"shared/0/real_time/threads:50", "mutex/real_time/threads:50"},
                                         {"permit/0/real_time", "mutex/real_time/threads:1", 1.2},
                                         {"permit/99/real_time", "permit/9/real_time"},
                                         {"permit/999/real_time", "permit/99/real_time", 1.5}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
