// One Redis through the whole of core, beside raw hiredis on the same server in the same run.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

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

void rawPosted(benchmark::State& state) {
  bench::RawRedis redis(server().port());
  const std::string key = "posted:" + keyOf(state);
  for (auto _ : state) redis.postedPair(key);
  redis.awaitPosted();
  state.SetItemsProcessed(state.iterations());
}

void sameScripts(benchmark::State& state, void (bench::RawRedis::*pair)(const std::string&)) {
  bench::RawRedis redis(server().port());
  const std::string key = keyOf(state);
  for (auto _ : state) (redis.*pair)(key);
  state.SetItemsProcessed(state.iterations());
}

// As redis-benchmark -c 4 -P 32 would do it, if it could run two scripts.
void together(benchmark::State& state) {
  bench::RawRedis redis(server().port());
  std::vector<std::string> keys;
  for (int i = 0; i < 16; ++i) keys.push_back(keyOf(state) + ":" + std::to_string(i));
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(keys.size())))
    redis.fencedPairsTogether(keys);
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

// A lock of one process with a queue: each waiter is woken up when its turn has come.
class FifoLock {
 public:
  void lock() {
    std::unique_lock held(mutex_);
    if (!std::exchange(taken_, true)) return;
    thread_local Waiter self;  // the threads outlive the lock
    self.turn = false;
    waiters_.push_back(&self);
    self.wakeUp.wait(held, [&] { return self.turn; });
  }
  void unlock() {
    std::unique_lock held(mutex_);
    taken_ = !waiters_.empty();
    if (!taken_) return;
    Waiter& next = *waiters_.front();
    waiters_.pop_front();
    next.turn = true;
    held.unlock();
    next.wakeUp.notify_one();
  }

 private:
  struct Waiter {
    std::condition_variable wakeUp;
    bool turn = false;
  };
  std::mutex mutex_;
  bool taken_ = false;
  std::deque<Waiter*> waiters_;
};

constexpr std::chrono::seconds hotTime{2};

// One hot key for two seconds: pairs a second, and how many more the luckiest thread had than the unluckiest.
template <class Take>
void oneHotKey(benchmark::State& state, Take take) {
  std::vector<std::int64_t> turns(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    std::atomic<bool> over = false;
    // They begin when all of them are in line: one that came before would have the lock to itself.
    std::optional first(take());
    std::vector<std::thread> running;
    for (std::int64_t& mine : turns) {
      running.emplace_back([&] {
        for (; !over; ++mine) auto held = take();
      });
    }
    std::this_thread::sleep_for(200ms);
    first.reset();
    std::this_thread::sleep_for(hotTime);
    over = true;
    for (std::thread& each : running) each.join();
  }
  const auto [least, most] = std::minmax_element(turns.begin(), turns.end());
  const double all = static_cast<double>(std::accumulate(turns.begin(), turns.end(), std::int64_t{0}));
  const double seconds = std::chrono::duration<double>(hotTime).count();
  state.counters["pairs/s"] = all / seconds;
  state.counters["most/least"] =
      static_cast<double>(*most) / static_cast<double>(std::max<std::int64_t>(*least, 1));
  state.SetIterationTime(seconds / all);  // RatioReport compares the time of one pair
}

void hotBare(benchmark::State& state) {
  FifoLock bare;
  oneHotKey(state, [&] { return std::unique_lock(bare); });
}

void hotKey(benchmark::State& state, const std::string& parameters) {
  LockManager& locks = manager(parameters);
  LockOptions options;
  options.waitFor = 1min;
  oneHotKey(state, [&] { return locks.lock("hot", options); });
}

BENCHMARK(raw)->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK(rawPosted)->Threads(1)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(sameScripts, plain, &bench::RawRedis::queuedPair)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK_CAPTURE(sameScripts, fenced, &bench::RawRedis::fencedPair)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(together)->Threads(4)->UseRealTime();
BENCHMARK_CAPTURE(pairs, plain, "?fence=off")->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(pairs, fenced, "")->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(posted, plain, "?fence=off")->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK_CAPTURE(posted, fenced, "")->Threads(1)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK(hotBare)->Arg(16)->Arg(64)->Iterations(1)->UseManualTime();
BENCHMARK_CAPTURE(hotKey, plain, "?fence=off")->Arg(16)->Iterations(1)->UseManualTime();
BENCHMARK_CAPTURE(hotKey, fenced, "")->Arg(16)->Arg(64)->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::server();  // on the thread that lives longest: the server dies with the one that started it
  const std::string one = "/real_time/threads:1", sixteen = "/real_time/threads:16",
                    many = "/real_time/threads:64";
  const std::string hot16 = "/16/iterations:1/manual_time", hot64 = "/64/iterations:1/manual_time";
  lockkeeper::bench::RatioReport report({{"pairs/plain" + one, "raw" + one, 1.05},
                                         {"pairs/plain" + one, "sameScripts/plain" + one},
                                         {"sameScripts/plain" + one, "raw" + one},
                                         {"pairs/fenced" + one, "raw" + one, 1.15},
                                         {"pairs/fenced" + one, "sameScripts/fenced" + one},
                                         {"sameScripts/fenced" + one, "raw" + one},
                                         {"posted/plain" + one, "raw" + one, 0.65},
                                         {"posted/plain" + one, "rawPosted" + one},
                                         {"rawPosted" + one, "raw" + one},
                                         {"posted/fenced" + one, "raw" + one, 0.65},
                                         {"pairs/plain" + sixteen, "raw" + sixteen},
                                         {"pairs/plain" + sixteen, "sameScripts/plain" + sixteen},
                                         {"pairs/fenced" + sixteen, "raw" + sixteen},
                                         {"pairs/fenced" + sixteen, "sameScripts/fenced" + sixteen},
                                         {"posted/plain" + sixteen, "raw" + sixteen, 0.67},
                                         {"posted/fenced" + sixteen, "raw" + sixteen, 0.67},
                                         {"posted/plain" + many, "raw" + many, 0.5},
                                         {"posted/plain" + many, "rawPosted" + many},
                                         {"rawPosted" + many, "raw" + many},
                                         {"posted/fenced" + many, "raw" + many, 0.5},
                                         {"posted/fenced" + many, "together/real_time/threads:4", 1.33},
                                         {"hotKey/plain" + hot16, "hotBare" + hot16},
                                         {"hotKey/fenced" + hot16, "hotBare" + hot16, 2.22},
                                         {"hotKey/fenced" + hot64, "hotBare" + hot64, 2.22}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}
