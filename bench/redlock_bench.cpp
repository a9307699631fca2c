// Redlock on five servers through the whole of core, beside one server in the same run.

#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "ratio_report.h"
#include "raw_redis.h"
#include "redis_server.h"
#include "redlock_uri.h"
#include "wait_until.h"

namespace lockkeeper {
namespace {

using Servers = std::array<test::RedisServer, 5>;

// How many of the nodes are left out of the rounds since they do not answer.
struct LeftOut final : Listener {
  void on(const Event& event) override {
    if (event.kind == EventKind::nodeAsked && event.node == NodeOutcome::leftOut) ++count;
  }
  std::atomic<int> count{0};
};

LockManager open(const std::string& uri, const std::shared_ptr<Listener>& listener) {
  StoreRegistry registry;
  redis::use(registry);
  ManagerOptions options;
  options.environment.listener = listener;
  return LockManager(registry.open(uri, options.environment), options);
}

std::string uriOf(const Servers& servers) {
  return test::redlockUri(servers, "restartGuard=off");  // the servers have only just started
}

struct Stores {
  Servers healthy;
  Servers silent;
  Servers refusing;
  std::shared_ptr<LeftOut> leftOut = std::make_shared<LeftOut>();
  LockManager one = open(healthy[0].uri() + "?fence=off", nullptr);
  LockManager five = open(uriOf(healthy), nullptr);
  LockManager twoSilent = open(uriOf(silent), leftOut);
  LockManager twoRefusing = open(uriOf(refusing), nullptr);

  /// Two of five stop, and have been found out; two of five others are killed.
  Stores() {
    (void)twoSilent.tryLock("all are there");
    (void)twoRefusing.tryLock("all are there");
    for (const std::size_t node : {1U, 3U}) {
      silent[node].pause();
      refusing[node].kill();
    }
    const bool found = test::waitUntil([&] {
      leftOut->count = 0;
      (void)twoSilent.tryLock("two are not");
      return leftOut->count == 4;  // in the round that takes and in the one that releases
    });
    if (!found) throw std::runtime_error("the stopped nodes are still asked");
  }
};

Stores& stores() {
  static Stores made;
  return made;
}

void pairs(benchmark::State& state, LockManager& locks) {
  const std::string key = "order:" + std::to_string(state.thread_index());
  for (auto _ : state) {
    auto held = locks.tryLock(key);
    if (!held || held->release() != ReleaseResult::released) state.SkipWithError("the lock was not taken");
  }
  state.SetItemsProcessed(state.iterations());
}

// As a client does that has no library: plain commands, to all five at once.
void bareFive(benchmark::State& state) {
  std::vector<bench::RawRedis> servers;
  for (const test::RedisServer& each : stores().healthy) servers.emplace_back(each.port());
  const std::string key = "bare:" + std::to_string(state.thread_index());
  for (auto _ : state) bench::RawRedis::pairOnAll(servers, key);
  state.SetItemsProcessed(state.iterations());
}

void oneNode(benchmark::State& state) { pairs(state, stores().one); }
void fiveNodes(benchmark::State& state) { pairs(state, stores().five); }
void twoOfFiveStopped(benchmark::State& state) { pairs(state, stores().twoSilent); }
void twoOfFiveDead(benchmark::State& state) { pairs(state, stores().twoRefusing); }

BENCHMARK(oneNode)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(bareFive)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(fiveNodes)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(twoOfFiveStopped)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(twoOfFiveDead)->Threads(1)->Threads(16)->UseRealTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::stores();  // on the thread that lives longest: the servers die with the one that started them
  const std::string one = "/real_time/threads:1", sixteen = "/real_time/threads:16";
  lockkeeper::bench::RatioReport report({{"fiveNodes" + one, "oneNode" + one, 2},
                                         {"fiveNodes" + one, "bareFive" + one},
                                         {"bareFive" + one, "oneNode" + one},
                                         {"twoOfFiveStopped" + one, "oneNode" + one, 2},
                                         {"twoOfFiveStopped" + one, "fiveNodes" + one, 1.5},
                                         {"twoOfFiveDead" + one, "fiveNodes" + one, 1.6},
                                         {"fiveNodes" + sixteen, "oneNode" + sixteen, 2},
                                         {"fiveNodes" + sixteen, "bareFive" + sixteen},
                                         {"bareFive" + sixteen, "oneNode" + sixteen},
                                         {"twoOfFiveStopped" + sixteen, "oneNode" + sixteen}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
