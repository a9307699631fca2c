#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <list>
#include <map>
#include <sstream>

#include "journal.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/schedule/scheduled_task.h"
#include "lockkeeper/store_registry.h"
#include "redis_server.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

struct TaskRun {
  std::string who;
  Instant granted{};  // not later than in the store
  Instant begin{};
  Instant end = Instant::max();
};

std::map<Fence, TaskRun> runsOf(const Journal& journal) {
  std::map<Fence, TaskRun> runs;
  for (const std::string& line : journal.lines()) {
    std::istringstream words(line);
    std::string what, who;
    Fence fence = 0;
    std::int64_t when = 0, granted = 0;
    words >> what >> who >> fence >> when >> granted;
    TaskRun& run = runs[fence];
    run.who = who;
    (what == "begin" ? run.begin : run.end) = Instant(std::chrono::nanoseconds(when));
    if (what == "begin") run.granted = Instant(std::chrono::nanoseconds(granted));
  }
  return runs;
}

TEST(ScheduledTaskOfProcesses, RunsNeverOverlapNorComeSoonerThanAtLeastThoughInstancesDieAndFreeze) {
  RedisServer server;
  const TempFolder folder;
  const Journal journal(folder / "journal");
  std::map<std::string, Process> instances;
  const auto start = [&](const std::string& who) {
    instances.erase(who);
    instances.try_emplace(who, std::vector<std::string>{SCHEDULED_INSTANCE, std::to_string(server.port()),
                                                        folder / "journal", who});
  };
  for (const char* who : {"a", "b", "c"}) start(who);

  // Hits one that is in the midst of a run.
  std::map<Fence, Instant> hit;
  Fence seen = 0;
  const auto awaitRun = [&] {
    Fence running = 0;
    EXPECT_TRUE(waitUntil(
        [&] {
          const auto runs = runsOf(journal);
          if (runs.empty()) return false;
          running = runs.rbegin()->first;
          return running > seen && runs.rbegin()->second.end == Instant::max();
        },
        60s));
    seen = running;
    return runsOf(journal)[running].who;
  };
  for (const char* fault : {"kill", "freeze", "kill", "freeze"}) {
    const std::string who = awaitRun();
    if (fault == std::string("kill")) {
      instances.at(who).signal(SIGKILL);
      instances.at(who).waitFor(20s);
      hit[seen] = systemClock()->now();
      start(who);
    } else {
      instances.at(who).pause();
      hit[seen] = systemClock()->now();
      awaitRun();
      instances.at(who).resume();
    }
  }
  const Fence last = seen;
  EXPECT_TRUE(waitUntil([&] { return runsOf(journal).rbegin()->first >= last + 3; }, 60s));
  for (auto& [who, process] : instances) process.signal(SIGTERM);
  for (auto& [who, process] : instances) EXPECT_EQ(process.waitFor(30s), 0) << who;

  auto runs = runsOf(journal);
  std::map<std::string, int> runsOfEach;
  for (auto& [fence, run] : runs) {
    ++runsOfEach[run.who];
    if (hit.contains(fence)) run.end = std::min(run.end, hit[fence]);
  }
  for (auto run = runs.begin(); std::next(run) != runs.end(); ++run) {
    const TaskRun& next = std::next(run)->second;
    EXPECT_LE(run->second.end, next.begin) << "fence " << run->first;
    EXPECT_GE(next.begin - run->second.granted, 500ms) << "fence " << run->first;
  }
  EXPECT_EQ(hit.size(), 4U);
  std::cout << runs.size() << " runs by " << runsOfEach.size() << " instances, " << hit.size() << " hit\n";
}

/// Counts what became of the ticks of all instances.
struct Outcomes final : Listener {
  void on(const Event& event) override {
    if (event.kind != EventKind::taskEnded) return;
    ++heard;
    if (event.task == TaskOutcome::done) ++done;
    if (event.task == TaskOutcome::skipped) ++skipped;
  }
  std::atomic<int> heard = 0, done = 0, skipped = 0;
};

TEST(ScheduledTicks, OneOfManyInstancesThatComeToATickAtTheSameMomentRunsItAndLaterOnesFindItDone) {
  RedisServer server;
  StoreRegistry registry;
  redis::use(registry);
  const auto outcomes = std::make_shared<Outcomes>();
  std::atomic<int> runs = 0;
  // The tick of an hour ago, which each instance comes to as soon as it starts.
  const auto clock = std::chrono::floor<std::chrono::minutes>(systemClock()->wallNow() - 1h);
  const std::chrono::hh_mm_ss time{clock - std::chrono::floor<std::chrono::days>(clock)};
  const auto daily = Schedule::cron(std::to_string(time.minutes().count()) + " " +
                                    std::to_string(time.hours().count()) + " * * *");
  std::list<ScheduledTask> instances;
  const auto start = [&] {
    ManagerOptions options;
    options.environment.listener = outcomes;
    const auto locks = std::make_shared<LockManager>(
        registry.open("redis://127.0.0.1:" + std::to_string(server.port())), options);
    const auto task = std::make_shared<ExclusiveTask>(locks, TaskOptions{.name = "tick"},
                                                      [&](const Lock&, const std::stop_token&) { ++runs; });
    instances.emplace_back(task, daily, ScheduleOptions{.missed = Missed::once});
  };
  for (int instance = 0; instance < 10; ++instance) start();
  EXPECT_TRUE(waitUntil([&] { return outcomes->heard == 10; }, 20s));
  start();
  EXPECT_TRUE(waitUntil([&] { return outcomes->heard == 11; }, 20s));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(outcomes->done, 1);
  EXPECT_EQ(outcomes->skipped, 10);
}

}  // namespace
}  // namespace lockkeeper::test
