#include "lockkeeper/exclusive_task.h"

#include <atomic>

#include "lock/manager_fixture.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using Outcomes = std::vector<TaskOutcome>;

/// Two instances of a service, each with the task.
class ExclusiveTaskTest : public ManagerFixture {
 protected:
  std::shared_ptr<ExclusiveTask> instance(const std::shared_ptr<LockManager>& at, TaskOptions options,
                                          ExclusiveTask::Work work) {
    options.name = "report";
    return std::make_shared<ExclusiveTask>(at, options, std::move(work));
  }
  ManagerOptions told(std::uint64_t randomSeed) {
    return heardBy(randomSeed, [this](const Event& event) {
      if (event.kind != EventKind::taskEnded) return;
      EXPECT_EQ(event.key, "report");
      const std::lock_guard guard(mutex);
      outcomes.push_back(event.task);
      messages.emplace_back(event.text);
    });
  }
  ExclusiveTask::Work counting() {
    return [this](const Lock& lock, const std::stop_token&) {
      EXPECT_TRUE(lock.valid());
      ++runs;
    };
  }

  std::mutex mutex;  // with what it guards, before the managers, which tell to their end
  Outcomes outcomes;
  std::vector<std::string> messages;
  const std::shared_ptr<LockManager> here = std::make_shared<LockManager>(network, told(seed + 2));
  const std::shared_ptr<LockManager> there = std::make_shared<LockManager>(store, told(seed + 3));
  const Instant start = clock->now();
  std::atomic<int> runs = 0;
};

TEST_F(ExclusiveTaskTest, RunsOnceATickThoughTheClocksOfTheInstancesAreApart) {
  const TaskOptions options{.atLeast = 5s};
  const auto a = instance(here, options, counting());
  const auto b = instance(there, options, counting());
  for (int tick = 1; tick <= 10; ++tick) {
    a->run();
    clock->advance(800ms);
    b->run();
    EXPECT_EQ(runs, tick);
    clock->advance(10s - 800ms);
  }
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), TaskOutcome::done), 10);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), TaskOutcome::skipped), 10);
}

TEST_F(ExclusiveTaskTest, TheNextRunMayBeginExactlyWhenAtLeastHasPassedSinceTheStart) {
  const TaskOptions options{.atLeast = 5s};
  const auto a = instance(here, options, [&](const Lock&, const std::stop_token&) { clock->advance(1s); });
  const auto b = instance(there, options, counting());
  EXPECT_EQ(a->run(), TaskOutcome::done);
  EXPECT_EQ(clock->now(), start + 1s) << "the timer's thread is not held up";
  clock->advance(4s - 1ms);
  EXPECT_EQ(b->run(), TaskOutcome::skipped);
  clock->advance(1ms);
  EXPECT_EQ(b->run(), TaskOutcome::done);
}

TEST_F(ExclusiveTaskTest, ATaskThatTookLongerThanAtLeastFreesItsKeyAtOnce) {
  const TaskOptions options{.atLeast = 5s};
  const auto a = instance(here, options, [&](const Lock&, const std::stop_token&) { clock->advance(5s); });
  const auto b = instance(there, options, counting());
  EXPECT_EQ(a->run(), TaskOutcome::done);
  EXPECT_EQ(b->run(), TaskOutcome::done);
}

TEST_F(ExclusiveTaskTest, IsSkippedWhileAnotherInstanceRunsIt) {
  std::shared_ptr<ExclusiveTask> b = instance(there, {}, counting());
  const auto a = instance(
      here, {}, [&](const Lock&, const std::stop_token&) { EXPECT_EQ(b->run(), TaskOutcome::skipped); });
  EXPECT_EQ(a->run(), TaskOutcome::done);
  EXPECT_EQ(outcomes, (Outcomes{TaskOutcome::skipped, TaskOutcome::done}));
  EXPECT_EQ(b->run(), TaskOutcome::done);
}

TEST_F(ExclusiveTaskTest, WhatTheWorkThrowsIsThrownOnAndItsKeyIsKeptForAtLeast) {
  const auto a = instance(here, {.atLeast = 5s}, [](const Lock&, const std::stop_token&) {
    throw std::runtime_error("the printer burns");
  });
  const auto b = instance(there, {.atLeast = 5s}, counting());
  EXPECT_THROW(a->run(), std::runtime_error);
  EXPECT_EQ(outcomes, Outcomes{TaskOutcome::threw});
  EXPECT_EQ(messages, std::vector<std::string>{"the printer burns"});
  EXPECT_EQ(b->run(), TaskOutcome::skipped);
  clock->advance(5s);
  EXPECT_EQ(b->run(), TaskOutcome::done);
}

TEST_F(ExclusiveTaskTest, AStoreThatIsDownIsReportedAndNothingRuns) {
  const auto a = instance(here, {.atLeast = 5s}, counting());
  network->fail(Call::acquire, {Fault::unavailable});
  EXPECT_EQ(a->run(), TaskOutcome::storeFailed);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(messages, std::vector<std::string>{"down, says the test"});
  EXPECT_EQ(a->run(), TaskOutcome::done);
}

TEST_F(ExclusiveTaskTest, AnExceptionOfTheStoreThatIsNoneOfOursIsReportedLikeAnyOther) {
  const auto a = instance(here, {}, counting());
  network->onAcquired = [] { throw std::runtime_error("none of ours"); };
  EXPECT_EQ(a->run(), TaskOutcome::storeFailed);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(messages, std::vector<std::string>{"none of ours"});
}

TEST_F(ExclusiveTaskTest, AtLeastIsKeptThoughTheInstanceDiesOrLosesItsStore) {
  const TaskOptions options{.atLeast = 60s, .ttl = 10s};
  const auto a = instance(here, options, counting());
  const auto b = instance(there, options, counting());
  network->failAlways(Call::renew, Fault::unavailable);
  network->failAlways(Call::release, Fault::unavailable);
  EXPECT_EQ(a->run(), TaskOutcome::done);
  clock->advance(60s - 1ms);
  EXPECT_EQ(b->run(), TaskOutcome::skipped);
  clock->advance(1ms);
  EXPECT_EQ(b->run(), TaskOutcome::done) << "and not longer than the lease";
}

/// Work that does what it is told to: ends when its token fires, unless it is deaf.
struct LongWork {
  std::promise<void> begun, told, leave;
  ExclusiveTask::Work work() {
    return [this](const Lock&, const std::stop_token& stop) {
      const std::stop_callback onStop(stop, [this] { told.set_value(); });
      begun.set_value();
      leave.get_future().wait();
    };
  }
};

TEST_F(ExclusiveTaskTest, WhenOneLeaseCoversAtMostTheTokenFiresBeforeAndAnotherMayRunRightThen) {
  LongWork deaf;
  const TaskOptions options{.atMost = 10s};
  const auto a = instance(here, options, deaf.work());
  const auto b = instance(there, options, counting());
  auto running = std::async(std::launch::async, [&] { return a->run(); });
  deaf.begun.get_future().wait();
  // Drift is 1% + 2 ms, the margin 10%.
  const auto firesAt = start + 10s - 102ms - 1s;
  ASSERT_TRUE(clock->awaitWakeUpAt(firesAt));
  auto told = deaf.told.get_future();
  clock->advance(5s);
  ASSERT_TRUE(clock->awaitWakeUpAt(firesAt)) << "it is not renewed";
  clock->advance(firesAt - clock->now() - 1ns);
  EXPECT_EQ(told.wait_for(0s), std::future_status::timeout);
  clock->advance(1ns);
  EXPECT_EQ(told.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(b->run(), TaskOutcome::skipped);
  clock->advance(start + 10s - clock->now());
  EXPECT_EQ(b->run(), TaskOutcome::done);
  deaf.leave.set_value();
  EXPECT_EQ(running.get(), TaskOutcome::lost);
  EXPECT_EQ(network->calls(Call::renew), 0);
}

TEST_F(ExclusiveTaskTest, ALongAtMostIsReachedByRenewalsAndEndsThem) {
  LongWork slow;
  const TaskOptions options{.atMost = 60s, .ttl = 30s};
  const auto a = instance(here, options, slow.work());
  const auto b = instance(there, options, counting());
  auto running = std::async(std::launch::async, [&] { return a->run(); });
  slow.begun.get_future().wait();
  auto told = slow.told.get_future();
  for (int renewal = 1; renewal <= 5; ++renewal) {
    ASSERT_TRUE(clock->awaitWakeUpAt(start + renewal * 10s));
    clock->advance(10s);
    EXPECT_EQ(b->run(), TaskOutcome::skipped);
    network->awaitCalls(Call::renew, renewal);
  }
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 60s));
  EXPECT_EQ(told.wait_for(0s), std::future_status::timeout);
  clock->advance(10s);
  EXPECT_EQ(told.wait_for(20s), std::future_status::ready);
  slow.leave.set_value();
  EXPECT_EQ(running.get(), TaskOutcome::lost);
  EXPECT_EQ(b->run(), TaskOutcome::done) << "freed by the end of the work, not only by that of the lease";
}

TEST_F(ExclusiveTaskTest, ALostLockIsNotFreedBeforeAtLeast) {
  const TaskOptions options{.atLeast = 10s, .atMost = 10s};
  const auto a = instance(here, options, [&](const Lock& lock, const std::stop_token&) {
    clock->advance(9s);
    EXPECT_FALSE(lock.valid());
    EXPECT_TRUE(waitUntil([&] { return lock.lost().stop_requested(); })) << "it is told";
  });
  const auto b = instance(there, options, counting());
  EXPECT_EQ(a->run(), TaskOutcome::lost);
  clock->advance(1s - 1ms);
  EXPECT_EQ(b->run(), TaskOutcome::skipped);
  clock->advance(1ms);
  EXPECT_EQ(b->run(), TaskOutcome::done);
}

TEST_F(ExclusiveTaskTest, FindsOutAtItsEndThatTheLockWasTakenFromIt) {
  const auto a = instance(here, {.atLeast = 5s}, [&](const Lock&, const std::stop_token&) {
    EXPECT_TRUE(store->breakLock("report", clock->now() + 1s));
  });
  EXPECT_EQ(a->run(), TaskOutcome::lost);
  EXPECT_EQ(listener->heard().back(), "lost: not the owner any more report");
}

TEST_F(ExclusiveTaskTest, StopsWhenItsCallerWantsIt) {
  LongWork obedient;
  const auto a = instance(here, {}, obedient.work());
  std::stop_source stop;
  auto running = std::async(std::launch::async, [&] { return a->run(stop.get_token()); });
  obedient.begun.get_future().wait();
  stop.request_stop();
  EXPECT_EQ(obedient.told.get_future().wait_for(20s), std::future_status::ready);
  obedient.leave.set_value();
  EXPECT_EQ(running.get(), TaskOutcome::done) << "its lock was good to the end";
  EXPECT_EQ(a->run(stop.get_token()), TaskOutcome::stopped);
}

TEST_F(ExclusiveTaskTest, MayBeDestroyedByItsOwnWork) {
  for (const bool throws : {false, true}) {
    std::shared_ptr<ExclusiveTask> ending;
    ending = instance(here, {.atLeast = 5s},
                      [&, what = std::string("the last of the jobs is done")](const Lock&, const auto&) {
                        ending.reset();
                        if (throws) throw std::runtime_error(what);
                        messages.push_back(what);
                      });
    if (throws) {
      EXPECT_THROW(ending->run(), std::runtime_error);
    } else {
      EXPECT_EQ(ending->run(), TaskOutcome::done);
    }
    EXPECT_FALSE(ending);
    EXPECT_FALSE(other.tryLock("report")) << "it is kept for atLeast";
    clock->advance(5s);
    EXPECT_TRUE(other.tryLock("report"));
  }
  EXPECT_EQ(outcomes, (Outcomes{TaskOutcome::done, TaskOutcome::threw}));
}

TEST_F(ExclusiveTaskTest, NamesTheOptionThatIsOutOfRange) {
  const auto messageOf = [&](TaskOptions options) -> std::string {
    try {
      ExclusiveTask(here, std::move(options), counting());
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(messageOf({.name = "t", .atLeast = -1ms}), "atLeast is -1ms: it must be 0s to 24h");
  EXPECT_EQ(messageOf({.name = "t", .atLeast = 25h, .atMost = 26h}), "atLeast is 25h: it must be 0s to 24h");
  EXPECT_EQ(messageOf({.name = "t", .atLeast = 5s, .atMost = 4s}), "atMost is 4s: it must be 5s to 8784h");
  EXPECT_EQ(messageOf({.name = "t", .atMost = 9ms}), "atMost is 9ms: it must be 10ms to 8784h");
  EXPECT_EQ(messageOf({.name = "t", .ttl = 9ms}), "ttl is 9ms: it must be 10ms to 24h");
  EXPECT_NE(messageOf({}), "nothing thrown") << "a task needs a name";
  EXPECT_EQ(network->calls(Call::acquire), 0);
}

}  // namespace
}  // namespace lockkeeper::test
