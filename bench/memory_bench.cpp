// The embedded store through the whole of core.

#include <benchmark/benchmark.h>

#include <mutex>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "ratio_report.h"

namespace lockkeeper {
namespace {

LockManager& manager() {
  static LockManager made(std::make_shared<MemoryDriver>());
  return made;
}

void pairs(benchmark::State& state) {
  const std::string key = "order:" + std::to_string(state.thread_index());
  for (auto _ : state) {
    auto held = manager().tryLock(key);
    benchmark::DoNotOptimize(held->release());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(pairs)->Threads(1)->Threads(4)->UseRealTime();

void busy(benchmark::State& state) {
  const auto held = manager().lock("held");
  for (auto _ : state) benchmark::DoNotOptimize(manager().tryLock("held"));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(busy);

void valid(benchmark::State& state) {
  const auto held = manager().lock("held");
  for (auto _ : state) benchmark::DoNotOptimize(held.valid());
}
BENCHMARK(valid);

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::bench::RatioReport report({{"pairs/real_time/threads:1", "", 400}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
