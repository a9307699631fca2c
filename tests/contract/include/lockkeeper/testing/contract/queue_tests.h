#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

// What a queue in the store must keep when those who wait are in several processes, here: clients of their
// own.

namespace lockkeeper::testing {

TEST_P(DriverContract, ServesTheWaitersOfSeveralClientsInTheirOrder) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  if (!GetParam().queued) GTEST_SKIP() << "the factory cannot tell how many claims wait";
  std::vector<std::shared_ptr<LockDriver>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(GetParam().open());
  clients.push_back(driver);
  const Claimant holds{key};
  ASSERT_TRUE(grant(holds));
  const Instant began = now();
  const std::vector<Claimant> inOrder{{key}, {key}, {key}, {key}, {key}};
  std::vector<Waiting> results;
  while (results.size() < 4) {
    results.push_back(waitFor(*clients[results.size()], inOrder[results.size()], farAway()));
    ASSERT_TRUE(queued(results.size()));
  }
  // Who releases and asks again comes behind those who wait.
  ASSERT_EQ(release(holds), ReleaseOutcome::released);
  results.push_back(waitFor(inOrder.back(), farAway()));
  Fence latest = 0;
  std::vector<std::size_t> served;
  while (served.size() < inOrder.size()) {
    const std::size_t next = nextOf(results);
    ASSERT_LT(next, inOrder.size()) << "nobody is served";
    const AcquireResult result = results[next].get();
    ASSERT_TRUE(std::holds_alternative<Granted>(result));
    if (const auto fence = std::get<Granted>(result).fence) {
      EXPECT_GT(*fence, latest);
      latest = *fence;
    }
    served.push_back(next);
    ASSERT_TRUE(queued(inOrder.size() - served.size())) << "only one of the queue may have been served";
    ASSERT_EQ(clients[next]->release(inOrder[next].claim(), deadline()), ReleaseOutcome::released);
  }
  EXPECT_TRUE(std::ranges::is_sorted(served) || mayHaveLostAPlace(began));
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
  EXPECT_LT(now() - released, std::chrono::milliseconds{3500})
      << "nobody but its silence tells in four seconds";
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
  // The first one looks four times a second, the others three times in ten seconds at most.
  const auto looksSince = [&](Instant from) {
    return static_cast<std::size_t>(4 + 4 * std::chrono::floor<std::chrono::seconds>(now() - from).count());
  };
  const Claimant holds{key};
  const std::vector<Claimant> waiters{{key}, {key}, {key}};
  ASSERT_TRUE(grant(holds));
  std::vector<Waiting> results;
  for (const Claimant& each : waiters) {
    results.push_back(waitFor(*otherClient, each, farAway()));
    ASSERT_TRUE(queued(results.size()));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{1200});
  const Instant waited = now();
  const std::size_t before = GetParam().requests();
  std::this_thread::sleep_for(std::chrono::milliseconds{1500});
  const std::size_t meanwhile = GetParam().requests() - before;
  EXPECT_LE(meanwhile, waiters.size() + looksSince(waited));
  const Instant released = now();
  const std::size_t turns = GetParam().requests();
  ASSERT_EQ(release(holds), ReleaseOutcome::released);
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    ASSERT_TRUE(std::holds_alternative<Granted>(results[i].get()));
    ASSERT_EQ(release(waiters[i]), ReleaseOutcome::released);
  }
  EXPECT_LT(now() - released, std::chrono::seconds{5}) << "waiters that only look find it three times in ten";
  const std::size_t sent = GetParam().requests() - turns;
  EXPECT_LE(sent, 1 + 2 * waiters.size() + looksSince(released))
      << "a confirmation and a release for each, and a look of the first one now and then";
}

}  // namespace lockkeeper::testing
