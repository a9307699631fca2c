// Rate limits: the embedded store and one Redis, beside redis-benchmark running the same script on the same
// server in the same run.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "process.h"
#include "ratio_report.h"
#include "redis_server.h"
#include "scripts.h"

namespace lockkeeper {
namespace {

test::RedisServer& server() {
  static test::RedisServer started;
  return started;
}

RateLimiter& onRedis() {
  static RateLimiter limiter = [] {
    StoreRegistry registry;
    redis::use(registry);
    return RateLimiter(registry.openRates(server().uri()));
  }();
  return limiter;
}

RateLimiter& inMemory() {
  static RateLimiter limiter(std::make_shared<MemoryDriver>());
  return limiter;
}

// Whose answer is always yes, and always no.
const RatePolicy generous("generous", {.rate = {1'000'000, std::chrono::seconds{1}}, .burst = 1'000'000'000});
const RatePolicy strict("strict", {.rate = {1, std::chrono::days{1}}});

std::string keyOf(const benchmark::State& state) { return "user:" + std::to_string(state.thread_index()); }

void takeAll(benchmark::State& state, RateLimiter& limiter, const std::string& key, const RatePolicy& policy,
             bool allowed) {
  for (auto _ : state) {
    if (limiter.take(key, policy).allowed != allowed) state.SkipWithError("another decision than expected");
  }
  state.SetItemsProcessed(state.iterations());
}

void memory(benchmark::State& state) { takeAll(state, inMemory(), keyOf(state), generous, true); }

void refused(benchmark::State& state) {
  (void)onRedis().take(keyOf(state), strict);
  takeAll(state, onRedis(), keyOf(state), strict, false);
}

void distinctKeys(benchmark::State& state) { takeAll(state, onRedis(), keyOf(state), generous, true); }

void oneHotKey(benchmark::State& state) { takeAll(state, onRedis(), "hot", generous, true); }

// The script of a take() of one unit from `generous`, on as many keys as distinctKeys has.
void redisBenchmark(benchmark::State& state) {
  const std::string sha = server().command({"SCRIPT", "LOAD", std::string(redis::scripts::rate_take)});
  for (auto _ : state) {
    const auto finished = test::runToEnd({"redis-benchmark",
                                          "-p",
                                          std::to_string(server().port()),
                                          "-c",
                                          "4",
                                          "-P",
                                          "32",
                                          "-n",
                                          "200000",
                                          "-r",
                                          "64",
                                          "--csv",
                                          "EVALSHA",
                                          sha,
                                          "1",
                                          ":lockkeeper:b::generous:user:__rand_int__",
                                          "each",
                                          "b",
                                          "1",
                                          "1",
                                          "0",
                                          "1000000000",
                                          "0",
                                          "1"});
    // A line of names, then "EVALSHA …","<calls a second>",…
    const auto figures = finished.output.find("\",\"", finished.output.find('\n')) + 3;
    state.SetIterationTime(1 / std::stod(finished.output.substr(figures)));
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(memory)->Threads(1)->Threads(4)->UseRealTime();
BENCHMARK(refused)->Threads(1)->Threads(4)->UseRealTime();
BENCHMARK(redisBenchmark)->Iterations(1)->UseManualTime();
BENCHMARK(distinctKeys)->Threads(1)->Threads(4)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK(oneHotKey)->Threads(4)->Threads(16)->Threads(64)->UseRealTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::server();  // on the thread that lives longest: the server dies with the one that started it
  const std::string floor = "redisBenchmark/iterations:1/manual_time";
  lockkeeper::bench::RatioReport report(
      {{"distinctKeys/real_time/threads:64", floor, 1.25}, {"oneHotKey/real_time/threads:64", floor, 0.25}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
