// Histories of locks on one Redis: the real manager, driver and scripts, under a schedule, clocks and a
// network of ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/redis_driver.h"
#include "simulation/locks/believers.h"
#include "simulation/locks/shrink.h"
#include "simulation/machine/scheduler.h"
#include "simulation/network/network.h"
#include "simulation/redis/node.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t nodeAddress = 0x0A000001;  // 10.0.0.1

// Bytes of the run, so that the same seed makes the same tokens.
class RandomOfRun final : public Random {
 public:
  explicit RandomOfRun(Chance& chance) : chance_(chance) {}
  void fill(std::span<std::byte> out) override {
    for (std::byte& each : out) each = static_cast<std::byte>(chance_());
  }

 private:
  Chance& chance_;
};

struct Outcome {
  std::vector<std::string> faults;
  std::uint64_t hash = 0;
  std::uint64_t grants = 0;
  std::uint64_t torn = 0;
  std::uint64_t slow = 0;
  std::uint64_t pauses = 0;
  std::uint64_t switches = 0;
  bool changed = false;  // a script that was run had the change
  Happened happened{};
  std::vector<std::string> trace{};
};

// A history: `processes` with two threads each, which take and release two keys in all ways.
class History {
 public:
  struct Change {
    const char* name;
    const char* from;
    const char* to;
  };

  explicit History(std::uint64_t seed, const Change& change = {"", "", ""}, const Kept& kept = {},
                   bool traced = false)
      : seed_(seed),
        scheduler_({.seed = seed,
                    .switching = seed % 3 == 0   ? 0.5
                                 : seed % 3 == 1 ? 0.1
                                                 : 0.01,
                    .kept = kept,
                    .traced = traced}),
        chance_(seed, 5),
        network_(scheduler_, seed),
        node_(scheduler_, network_, nodeAddress, seed),
        believers_(scheduler_) {
    node_.changeScripts(change.from, change.to);
  }

  Outcome run() {
    try {
      scheduler_.run([this] { live(); });
    } catch (const Unending& fault) {
      believers_.fail("the history", fault.what());
    }
    Outcome outcome{.faults = believers_.faults(),
                    .hash = scheduler_.traceHash(),
                    .grants = believers_.grants(),
                    .torn = network_.torn(),
                    .slow = network_.slow(),
                    .pauses = pauses_,
                    .switches = scheduler_.switches(),
                    .changed = node_.hasChangedScripts(),
                    .trace = scheduler_.traceLines()};
    for (std::size_t kind = 0; kind < eventKinds; ++kind)
      outcome.happened[kind] = scheduler_.occasions(static_cast<Event>(kind)).happened();
    return outcome;
  }

 private:
  void live() {
    const bool faulty = chance_.happens(0.7);
    if (faulty) network_.faults = {.slow = 0.02, .slowest = 4 * second, .torn = 0.01};
    std::vector<std::thread> computers;
    for (int i = 0; i < processes; ++i) {
      const int id = scheduler_.addProcess({.name = "process " + std::to_string(i),
                                            .drift = 1e-4 * (static_cast<double>(chance_.upTo(20)) - 10),
                                            .bootOffset = static_cast<Time>(chance_.upTo(1000)) * second,
                                            .wallOffset = static_cast<Time>(chance_.upTo(100)) * second});
      computers.emplace_back([this, id] { process(id); });
    }
    std::thread trouble([&] {
      if (faulty) makeTrouble();
    });
    for (std::thread& each : computers) each.join();
    trouble.join();
    leaveNothing();
  }

  static constexpr int processes = 4;
  static constexpr int operations = 12;
  static constexpr auto operationTimeout = 1s;
  static constexpr auto ioTimeout = 2s;

  // Faults that keep the promise of one Redis with an append-only file: no lost data, no step of its clock.
  void makeTrouble() {
    scheduler_.nameThread("trouble");
    for (std::uint32_t i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(chance_.upTo(1000)));
      const int process = 1 + static_cast<int>(chance_.upTo(processes - 1));
      const Time until = scheduler_.now() + static_cast<Time>(chance_.upTo(3 * second));
      const std::uint64_t what = chance_.upTo(3);
      if (scheduler_.occasions(Event::fault).isKept(i)) makeFault(what, process, until);
    }
  }

  void makeFault(std::uint64_t what, int process, Time until) {
    static const char* const names[] = {"is paused", "has no network", "the server restarts",
                                        "the server is away"};
    scheduler_.trace([&] {
      return (what < 2 ? scheduler_.process(process).name + " " : std::string()) + names[what] +
             (what == 2 ? "" : " for " + std::to_string((until - scheduler_.now()) / millisecond) + " ms");
    });
    if (what == 0) {
      scheduler_.process(process).pausedUntil = until;
      pausedUntil_ = std::max(pausedUntil_, until);
      ++pauses_;
    } else if (what == 1) {
      network_.hold(process, nodeAddress, until);
    } else {
      node_.restart(false);
      if (what == 3) node_.stopUntil(until);
    }
  }

  // What is there when everybody has gone and each lease has ended: counters of fences, and nothing else.
  void leaveNothing() {
    std::this_thread::sleep_for(15s);
    for (const std::string& name : node_.keys().names()) {
      if (name.find("fence") == std::string::npos) believers_.fail(name, "is left");
    }
  }

  void process(int id) {
    scheduler_.enterProcess(id);
    Environment environment;
    environment.random = std::make_shared<RandomOfRun>(scheduler_.chance());
    redis::RedisOptions options;
    options.host = "10.0.0.1";
    LockManager manager(std::make_shared<redis::RedisDriver>(options, environment),
                        {.owner = "p" + std::to_string(id),
                         .operationTimeout = operationTimeout,
                         .lock = {.ttl = 1s},
                         .environment = environment});
    const auto worker = static_cast<std::uint32_t>(2 * id);
    std::thread other([&] { work(manager, worker + 1); });
    work(manager, worker);
    other.join();
  }

  void work(LockManager& manager, std::uint32_t worker) {
    scheduler_.nameThread(scheduler_.process(scheduler_.thisProcess()).name +
                          (worker % 2 == 0 ? ".a" : ".b"));
    for (std::uint32_t i = 0; i < operations; ++i) {
      const std::uint32_t number = 100 * worker + i;
      if (scheduler_.occasions(Event::operation).isKept(number))
        operate(manager, Chance(seed_, 1000 + number));
    }
  }

  void operate(LockManager& manager, Chance chance) {
    const std::string key = chance.happens(0.7) ? "a" : "b";
    const bool shared = chance.happens(0.25);
    LockOptions options;
    options.waitFor = std::chrono::milliseconds(chance.happens(0.3) ? 0 : chance.upTo(4000));
    if (chance.happens(0.3)) options.renew = Renew::manual;
    scheduler_.trace([&] {
      return "takes " + std::string(shared ? "a share of " : "") + key + ", waits for up to " +
             std::to_string(options.waitFor->count()) + " ms";
    });
    const Time began = scheduler_.now();
    const std::uint64_t pausedBefore = pauses_;
    try {
      std::optional<Lock> lock = shared ? manager.tryLockShared(key, options) : manager.tryLock(key, options);
      endedAfter(began, pausedBefore, *options.waitFor, key);
      if (!lock) scheduler_.trace([&] { return key + " is busy"; });
      if (lock) hold(key, *lock, shared, chance);
    } catch (const Error& error) {
      scheduler_.trace([&] { return std::string("gets an error: ") + error.what(); });
      endedAfter(began, pausedBefore, *options.waitFor, key);  // the store could not be reached in time
    }
    if (chance.happens(0.3)) std::this_thread::sleep_for(std::chrono::milliseconds(chance.upTo(1000)));
  }

  // A call ends after its wait, one operation and one I/O timeout; where nobody was paused meanwhile.
  void endedAfter(Time began, std::uint64_t pausedBefore, std::chrono::milliseconds waitFor,
                  const std::string& key) {
    const Time most =
        std::chrono::nanoseconds(waitFor + operationTimeout + ioTimeout).count() + 100 * millisecond;
    if (pauses_ == pausedBefore && pausedUntil_ < began && scheduler_.now() - began > most) {
      believers_.fail(key, "was waited for " + std::to_string((scheduler_.now() - began) / millisecond) +
                               " ms instead of " + std::to_string(waitFor.count()));
    }
  }

  void hold(const std::string& key, Lock& lock, bool shared, Chance& chance) {
    scheduler_.trace([&] {
      return "has " + key + ", fence " +
             std::to_string(static_cast<std::uint64_t>(lock.fence().value_or(Fence{})));
    });
    const auto belief = believers_.granted(key, lock, shared);
    if (chance.happens(0.7)) {
      const bool longer = chance.happens(0.2);
      std::this_thread::sleep_for(std::chrono::milliseconds(chance.upTo(longer ? 2500 : 100)));
    }
    believers_.givesUp(belief);
    scheduler_.trace([&] { return "gives back " + key; });
    if (chance.happens(0.1)) {
      lock.releaseHeldFor(std::chrono::milliseconds(chance.upTo(300)));
    } else if (chance.happens(0.5)) {
      lock.release();
    } else {
      lock = {};
    }
  }

  const std::uint64_t seed_;
  Scheduler scheduler_;
  Chance chance_;
  Network network_;
  RedisNode node_;
  Believers believers_;
  std::uint64_t pauses_ = 0;
  Time pausedUntil_ = 0;
};

std::uint64_t numberFrom(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

// The fewest events with which that history fails, and what happens then.
std::string shrunkTrace(std::uint64_t seed, const History::Change& change = {"", "", ""}) {
  const Kept few = shrink(History(seed, change).run().happened, [&](const Kept& kept) {
    return !History(seed, change, kept).run().faults.empty();
  });
  const Outcome outcome = History(seed, change, few, true).run();
  std::string text = "with";
  static const char* const kinds[eventKinds] = {"faults",      "torn",       "slow",
                                                "short reads", "operations", "preemptions"};
  for (std::size_t kind = 0; kind < eventKinds; ++kind)
    text +=
        " " + std::to_string(few[kind]->size()) + " " + kinds[kind] + (kind + 1 < eventKinds ? "," : ":\n");
  for (const std::string& line : outcome.trace) text += line + "\n";
  for (const std::string& fault : outcome.faults) text += fault + "\n";
  return text;
}

TEST(LockHistories, AreShrunk) {
  const History::Change change{"", "'NX', 'PX'", "'PX'"};
  const std::string trace = shrunkTrace(1, change);
  EXPECT_NE(trace.find("with 0 faults, 0 torn, 0 slow, 0 short reads, 2 operations"), std::string::npos)
      << trace;
}

TEST(LockHistories, TheSameSeedIsTheSameHistory) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    EXPECT_EQ(History(seed).run().hash, History(seed).run().hash) << seed;
}

class ChangedScript : public ::testing::TestWithParam<History::Change> {};

// What the histories are worth: each defect is found.
TEST_P(ChangedScript, IsFound) {
  bool met = false;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Outcome outcome = History(seed, GetParam()).run();
    met = met || outcome.changed;
    if (outcome.faults.empty()) continue;
    std::printf("found by seed %llu: %s\n", static_cast<unsigned long long>(seed), outcome.faults[0].c_str());
    return;
  }
  FAIL() << (met ? "200 histories are not enough" : "no script contains what is changed");
}

const History::Change changes[] = {
    {"ReleaseWithoutCompare", "return own and redis.call('DEL', KEYS[1]) or 0",
     "return redis.call('DEL', KEYS[1])"},
    {"AcquireWithoutNx", "'NX', 'PX'", "'PX'"},
    {"FenceOfTheLastGrant", "local fence = tonumber(redis.pcall('INCR', counter)) or 0",
     "local fence = tonumber(redis.pcall('GET', counter)) or 0"},
    {"SharesWithoutLimit",
     "return not permits.limit or limit == permits.limit and permits.used + weight <= limit", "return true"},
    {"GrantFromTheQueueIsShort", "redis.call('SET', KEYS[1], waiter, 'PX', entry.ttl)",
     "redis.call('SET', KEYS[1], waiter, 'PX', 200)"},
    {"RenewedShareStaysShort", "redis.call('ZADD', KEYS[1], now + length, ARGV[1])", ""},
};

INSTANTIATE_TEST_SUITE_P(Each, ChangedScript, ::testing::ValuesIn(changes),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(LockHistories, HaveOneHolderAndIncreasingFences) {
  const std::uint64_t first = numberFrom("LOCKKEEPER_SEED", 1);
  const std::uint64_t count = numberFrom("LOCKKEEPER_HISTORIES", 50);
  Outcome all;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Outcome outcome = History(seed).run();
    for (const std::string& fault : outcome.faults) ADD_FAILURE() << "seed " << seed << ", " << fault;
    if (!outcome.faults.empty()) ADD_FAILURE() << "seed " << seed << ", shrunk, " << shrunkTrace(seed);
    all.grants += outcome.grants;
    all.torn += outcome.torn;
    all.slow += outcome.slow;
    all.pauses += outcome.pauses;
    all.switches += outcome.switches;
  }
  std::printf("%llu grants, %llu connections reset, %llu slow packets, %llu pauses, %llu switches\n",
              static_cast<unsigned long long>(all.grants), static_cast<unsigned long long>(all.torn),
              static_cast<unsigned long long>(all.slow), static_cast<unsigned long long>(all.pauses),
              static_cast<unsigned long long>(all.switches));
  EXPECT_GT(all.grants, count);
  if (count >= 20) {
    EXPECT_GT(all.torn, 0U);
    EXPECT_GT(all.slow, 0U);
    EXPECT_GT(all.pauses, 0U);
  }
}

}  // namespace
}  // namespace lockkeeper::simulation
