// How long a call without a bound on its wait waits for a store that cannot be reached.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "lockkeeper/mutex.h"
#include "manager_fixture.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
namespace {

class OutageTest : public ManagerFixture {
 protected:
  std::future<Lock> lock(LockManager& by) {
    return std::async(std::launch::async, [&by] { return by.lock("order"); });
  }
  Lock heldElsewhere() {
    threads += managerThreads;
    return other.lock("order", {.ttl = 24h, .renew = Renew::manual});
  }
  /// Second by second, while so many callers wait, all of which ask the store meanwhile or stand in line.
  void pass(std::chrono::seconds length, std::size_t callers = 1) {
    for (; length > 0s; length -= 1s) {
      ASSERT_TRUE(clock->awaitWaiters(threads + callers));
      clock->advance(1s);
    }
  }
  template <class Waits>
  static bool isOver(const Waits& call, std::chrono::milliseconds bound = 20s) {
    return call.wait_for(bound) == std::future_status::ready;
  }

  std::size_t threads = managerThreads;
};

TEST_F(OutageTest, ALockWithoutAWaitForEndsAfterAMinute) {
  network->failAlways(Call::acquire, Fault::unavailable);
  auto waits = lock(manager);
  pass(59s);
  EXPECT_FALSE(isOver(waits, 50ms));
  pass(1s);
  ASSERT_TRUE(isOver(waits));
  EXPECT_THROW(waits.get(), StoreUnavailable);
}

TEST_F(OutageTest, ADoubtThatLastsIsNoAnswer) {
  network->failAlways(Call::acquire, Fault::requestLost);
  auto waits = lock(manager);
  pass(60s);
  ASSERT_TRUE(isOver(waits));
  EXPECT_THROW(waits.get(), OutcomeUnknown);
}

TEST_F(OutageTest, ABusyKeyIsWaitedForWithoutEndAndEachAnswerEndsTheOutage) {
  auto held = heldElsewhere();
  auto waits = lock(manager);
  pass(300s);
  for (int outage = 0; outage < 3; ++outage) {
    network->failAlways(Call::acquire, Fault::unavailable);
    pass(40s);
    network->heal();
    pass(1s);
    ASSERT_TRUE(clock->awaitWaiters(threads + 1)) << "the store has answered";
  }
  EXPECT_FALSE(isOver(waits, 50ms));
  held.release();
  while (!isOver(waits, 10ms)) clock->advance(1s);
  EXPECT_TRUE(waits.get().valid());
}

TEST_F(OutageTest, WhoStandsInLineGivesUpAfterItsOwnMinute) {
  network->failAlways(Call::acquire, Fault::unavailable);
  auto first = lock(manager);
  pass(20s);
  auto second = lock(manager);
  auto third = lock(manager);
  pass(40s, 3);
  ASSERT_TRUE(isOver(first));
  EXPECT_THROW(first.get(), StoreUnavailable);
  pass(19s, 2);
  EXPECT_FALSE(isOver(second, 50ms) || isOver(third, 50ms));
  pass(1s, 2);
  ASSERT_TRUE(isOver(second) && isOver(third));
  EXPECT_THROW(second.get(), StoreUnavailable);
  EXPECT_THROW(third.get(), StoreUnavailable);
}

TEST_F(OutageTest, WhoHasStoodInLineForLongGivesUpAMinuteAfterTheOutageBegins) {
  auto held = heldElsewhere();
  auto first = lock(manager);
  ASSERT_TRUE(clock->awaitWaiters(threads + 1));
  auto second = lock(manager);
  pass(100s, 2);
  const Instant outage = clock->now();
  network->failAlways(Call::acquire, Fault::unavailable);
  pass(59s, 2);
  EXPECT_FALSE(isOver(first, 50ms) || isOver(second, 50ms));
  while (!isOver(first, 10ms) || !isOver(second, 10ms)) clock->advance(1s);
  EXPECT_LE(clock->now() - outage, 65s);
  EXPECT_THROW(first.get(), StoreUnavailable);
  EXPECT_THROW(second.get(), StoreUnavailable);
}

/// A store that cannot be reached, and that takes all of the time of each request from `deaf` on.
class DeafToClaims final : public PlainDecorator {
 public:
  DeafToClaims(std::shared_ptr<LockDriver> inner, std::shared_ptr<FakeClock> clock, Instant deaf)
      : PlainDecorator(std::move(inner)), clock_(std::move(clock)), deaf_(deaf) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    if (clock_->now() < deaf_) throw StoreUnavailable("down, says the test");
    clock_->advance(request.deadline - clock_->now());
    throw OutcomeUnknown("deaf, says the test");
  }

 private:
  const std::shared_ptr<FakeClock> clock_;
  const Instant deaf_;
};

TEST_F(OutageTest, ADoubtThatArisesAtTheEndIsClearedUpForOneOperationAtMost) {
  const Instant began = clock->now();
  LockManager waiting(std::make_shared<DeafToClaims>(store, clock, began + 60s), options(seed + 2));
  auto waits = lock(waiting);
  pass(60s);
  ASSERT_TRUE(isOver(waits));
  EXPECT_THROW(waits.get(), OutcomeUnknown);
  EXPECT_EQ(clock->now(), began + 62s);
}

/// A store that is slow enough for another caller to get in line meanwhile. Its threads share nothing else
/// with that caller: a thread sanitizer then sees what they share unguarded.
class AnswersWhenTwoAsk final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  AcquireResult acquire(const AcquireRequest& request) override {
    while (callers.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
    for (int turn = 0; turn < 2000; ++turn) std::this_thread::yield();
    return inner_->acquire(request);
  }

  std::atomic<int> callers = 0;
};

TEST_F(OutageTest, WhatTheFirstInLineKnowsOfAnOutageIsGuarded) {
  const auto slow = std::make_shared<AnswersWhenTwoAsk>(store);
  LockManager both(slow, options(seed + 2));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      slow->callers.fetch_add(1, std::memory_order_relaxed);
      EXPECT_TRUE(both.lock("order").valid());
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST_F(OutageTest, CallersInLineForOneOwnerGiveUpTogether) {
  network->failAlways(Call::acquire, Fault::unavailable);
  ReentrantLock owner(manager, "order");
  const auto enter = [&] { return std::async(std::launch::async, [&] { owner.lock(); }); };
  auto first = enter();
  pass(20s);
  auto second = enter(), third = enter();
  pass(40s, 3);
  for (auto* each : {&first, &second, &third}) {
    ASSERT_TRUE(isOver(*each));
    EXPECT_THROW(each->get(), StoreUnavailable);
  }
}

TEST_F(OutageTest, AManagerMayWaitForEver) {
  ManagerOptions patient = options(seed + 2);
  patient.longestOutage = forever;
  LockManager waiting(network, patient);
  network->failAlways(Call::acquire, Fault::unavailable);
  auto waits = lock(waiting);
  pass(300s);
  clock->advance(24h);
  EXPECT_FALSE(isOver(waits, 50ms));
  network->heal();
  while (!isOver(waits, 10ms)) clock->advance(1s);
  EXPECT_TRUE(waits.get().valid());
}

TEST_F(OutageTest, ACallWithAWaitForWaitsForThatLong) {
  ManagerOptions hasty = options(seed + 2);
  hasty.longestOutage = 1ms;
  LockManager waiting(network, hasty);
  network->failAlways(Call::acquire, Fault::unavailable);
  auto waits = std::async(std::launch::async, [&] { return waiting.lock("order", {.waitFor = 30s}); });
  pass(29s);
  EXPECT_FALSE(isOver(waits, 50ms));
  pass(1s);
  ASSERT_TRUE(isOver(waits));
  EXPECT_THROW(waits.get(), StoreUnavailable);
}

TEST_F(OutageTest, TheOptionIsBetweenAMillisecondAndADayOrForever) {
  ManagerOptions wrong = options();
  wrong.longestOutage = 0ms;
  try {
    checkOptions(wrong);
    ADD_FAILURE() << "0 ms";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "longestOutage is 0s: it must be 1ms to 24h");
  }
  wrong.longestOutage = 25h;
  EXPECT_THROW(checkOptions(wrong), std::invalid_argument);
  wrong.longestOutage = forever;
  checkOptions(wrong);
}

}  // namespace
}  // namespace lockkeeper::test
