#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

// What a queue in the store must keep when those who wait are in several processes, here: clients of their
// own.

namespace lockkeeper::testing {

TEST_P(DriverContract, ServesTheWaitersOfSeveralClientsInTheirOrder) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  if (!GetParam().queued) GTEST_SKIP() << "the factory cannot tell how many claims wait";
  const Claimant holds{key};
  ASSERT_TRUE(grant(holds));
  const std::vector<Claimant> inOrder{{key}, {key}, {key}, {key}};
  std::vector<std::shared_ptr<LockDriver>> clients;
  std::vector<Waiting> results;
  for (std::size_t i = 0; i < inOrder.size(); ++i) {
    clients.push_back(GetParam().open());
    results.push_back(waitFor(*clients[i], inOrder[i], farAway()));
    ASSERT_TRUE(queued(i + 1));
  }
  // Who releases and asks again comes behind those who wait.
  ASSERT_EQ(release(holds), ReleaseOutcome::released);
  const Claimant again{key};
  Waiting last = waitFor(again, farAway());
  Fence latest = 0;
  for (std::size_t i = 0; i < inOrder.size(); ++i) {
    const AcquireResult result = results[i].get();
    ASSERT_TRUE(std::holds_alternative<Granted>(result));
    if (const auto fence = std::get<Granted>(result).fence) {
      EXPECT_GT(*fence, latest);
      latest = *fence;
    }
    ASSERT_TRUE(queued(inOrder.size() - i)) << "only the first of the queue may have been served";
    ASSERT_EQ(clients[i]->release(inOrder[i].claim(), deadline()), ReleaseOutcome::released);
  }
  EXPECT_TRUE(std::holds_alternative<Granted>(last.get()));
}

TEST_P(DriverContract, TheNextInTheQueueGetsABrokenLock) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  if (!GetParam().breakable) GTEST_SKIP() << notBreakable;
  const Claimant broken{key};
  const Claimant waits{key};
  ASSERT_TRUE(grant(broken));
  Waiting result = waitFor(*otherClient, waits, farAway());
  ASSERT_TRUE(queued(1));
  EXPECT_TRUE(breakLock(key));
  EXPECT_TRUE(std::holds_alternative<Granted>(result.get()));
  EXPECT_EQ(release(broken), ReleaseOutcome::notOwner);
  EXPECT_EQ(release(waits), ReleaseOutcome::released);
}

TEST_P(DriverContract, AWaiterThatGivesUpInTheMomentOfAReleasePassesTheKeyOn) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  if (!GetParam().queued) GTEST_SKIP() << "the factory cannot tell how many claims wait";
  for (int round = 0; round < 20; ++round) {
    const Claimant holds{key};
    const Claimant givesUp{key};
    const Claimant waits{key};
    ASSERT_TRUE(grant(holds));
    Waiting first = waitFor(givesUp, farAway());
    ASSERT_TRUE(queued(1));
    Waiting second = waitFor(*otherClient, waits, farAway());
    ASSERT_TRUE(queued(2));
    std::thread stopper([&] { first.stop(); });
    ASSERT_EQ(release(holds), ReleaseOutcome::released);
    stopper.join();
    // It may have been granted just before.
    if (std::holds_alternative<Granted>(first.get())) {
      ASSERT_EQ(release(givesUp), ReleaseOutcome::released);
    }
    ASSERT_TRUE(std::holds_alternative<Granted>(second.get()));
    ASSERT_EQ(otherClient->release(waits.claim(), deadline()), ReleaseOutcome::released);
    ASSERT_FALSE(holder(key));
  }
}

TEST_P(DriverContract, ADeadWaiterDelaysTheNextByASecondAtMost) {
  if (!GetParam().addDeadWaiter) GTEST_SKIP() << "the factory cannot make a dead waiter";
  const Claimant holds{key};
  const Claimant waits{key};
  ASSERT_TRUE(grant(holds));
  GetParam().addDeadWaiter(key);
  Waiting result = waitFor(*otherClient, waits, farAway());
  ASSERT_TRUE(queued(2));
  ASSERT_EQ(release(holds), ReleaseOutcome::released);
  const Instant released = now();
  ASSERT_TRUE(std::holds_alternative<Granted>(result.get()));
  EXPECT_LT(now() - released, std::chrono::milliseconds{1500});
}

TEST_P(DriverContract, ALostWakeUpCostsABoundedPause) {
  if (!GetParam().endWakeUps) GTEST_SKIP() << "the factory cannot lose messages";
  for (int round = 0; round < 3; ++round) {
    const Claimant holds{key};
    const Claimant waits{key};
    ASSERT_TRUE(grant(holds));
    Waiting result = waitFor(*otherClient, waits, farAway());
    ASSERT_TRUE(queued(1));
    GetParam().endWakeUps();
    ASSERT_EQ(release(holds), ReleaseOutcome::released);
    const Instant released = now();
    ASSERT_TRUE(std::holds_alternative<Granted>(result.get()));
    EXPECT_LT(now() - released, GetParam().longestPause);
    ASSERT_EQ(release(waits), ReleaseOutcome::released);
  }
}

TEST_P(DriverContract, HandsOverWithoutPolling) {
  if (!GetParam().requests) GTEST_SKIP() << "the factory cannot count requests";
  // Waiters that only look find the lock three times in ten seconds. A machine with other work may stall in
  // one round.
  constexpr std::chrono::seconds threeLooks{5};
  std::chrono::nanoseconds fastest = std::chrono::nanoseconds::max();
  for (int round = 0; round < 3 && fastest >= threeLooks; ++round) {
    const Claimant holds{key};
    const std::vector<Claimant> waiters{{key}, {key}, {key}};
    ASSERT_TRUE(grant(holds));
    std::vector<Waiting> results;
    for (const Claimant& each : waiters) {
      results.push_back(waitFor(*otherClient, each, farAway()));
      ASSERT_TRUE(queued(results.size()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1200});
    // The first one looks four times a second, the others three times in ten seconds at most.
    const std::size_t before = GetParam().requests();
    std::this_thread::sleep_for(std::chrono::milliseconds{1500});
    EXPECT_LE(GetParam().requests() - before, waiters.size() + 6);
    const Instant released = now();
    const std::size_t turns = GetParam().requests();
    ASSERT_EQ(release(holds), ReleaseOutcome::released);
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      ASSERT_TRUE(std::holds_alternative<Granted>(results[i].get()));
      ASSERT_EQ(release(waiters[i]), ReleaseOutcome::released);
    }
    const std::chrono::nanoseconds took = now() - released;
    fastest = std::min(fastest, took);
    const auto looks =
        static_cast<std::size_t>(4 + 4 * std::chrono::floor<std::chrono::seconds>(took).count());
    EXPECT_LE(GetParam().requests() - turns, 1 + 2 * waiters.size() + looks)
        << "a confirmation and a release for each, and a look of the first one now and then";
  }
  EXPECT_LT(fastest, threeLooks) << "it was found by looking";
}

}  // namespace lockkeeper::testing
