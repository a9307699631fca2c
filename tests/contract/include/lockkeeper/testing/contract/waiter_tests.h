#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

// What a driver that is WaiterBrowsable tells of those who wait.

namespace lockkeeper::testing {

TEST_P(DriverContract, ListsWhoWaitsInTheOrderInWhichTheyAreServed) {
  if (!GetParam().showsWaiters) GTEST_SKIP() << "the driver is not WaiterBrowsable";
  if (!GetParam().queued) GTEST_SKIP() << "the factory cannot tell how many claims wait";
  const Claimant holds{key};
  ASSERT_TRUE(grant(holds));
  EXPECT_TRUE(ownersOfWaiters(key).empty());
  std::vector<Claimant> inOrder;
  for (const char* const owner : {"first:1", "second:2", "third:3"}) inOrder.push_back({key, owner});
  std::vector<std::shared_ptr<LockDriver>> clients;
  std::vector<Waiting> results;
  for (std::size_t i = 0; i < inOrder.size(); ++i) {
    clients.push_back(GetParam().open());
    results.push_back(waitFor(*clients[i], inOrder[i], farAway()));
    ASSERT_TRUE(queued(i + 1));
  }
  EXPECT_EQ(ownersOfWaiters(key), (std::vector<std::string>{"first:1", "second:2", "third:3"}));

  const std::string nobodys = uniqueKey();
  const std::array keys{nobodys, key, nobodys};
  const auto listed = capability<WaiterBrowsable>(*driver)->waiters(keys, deadline());
  ASSERT_EQ(listed.size(), keys.size());
  EXPECT_TRUE(listed[0].empty());
  EXPECT_TRUE(listed[2].empty());
  ASSERT_EQ(listed[1].size(), 3U);
  for (const Waiter& each : listed[1]) {
    ASSERT_TRUE(each.waited);
    EXPECT_GE(*each.waited, each.waited->zero());
    EXPECT_LT(*each.waited, std::chrono::minutes{1});
    EXPECT_FALSE(each.share);
  }
  EXPECT_GE(*listed[1][0].waited, *listed[1][2].waited);

  results[1].stop();
  EXPECT_TRUE(std::holds_alternative<Busy>(results[1].get()));
  EXPECT_EQ(ownersOfWaiters(key), (std::vector<std::string>{"first:1", "third:3"})) << "it has given up";
  ASSERT_EQ(release(holds), ReleaseOutcome::released);
  ASSERT_TRUE(std::holds_alternative<Granted>(results[0].get()));
  EXPECT_EQ(ownersOfWaiters(key), std::vector<std::string>{"third:3"}) << "who has the key does not wait";
  ASSERT_EQ(clients[0]->release(inOrder[0].claim(), deadline()), ReleaseOutcome::released);
  ASSERT_TRUE(std::holds_alternative<Granted>(results[2].get()));
  EXPECT_TRUE(ownersOfWaiters(key).empty());
}

TEST_P(DriverContract, ListsWhatAWaiterWantsOfAKey) {
  if (!GetParam().showsWaiters) GTEST_SKIP() << "the driver is not WaiterBrowsable";
  if (!GetParam().queued) GTEST_SKIP() << "the factory cannot tell how many claims wait";
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  const Claimant holds = sharer(2, 3);
  ASSERT_TRUE(grant(holds));
  const Claimant wants = sharer(3, 3);
  const Waiting waits = waitFor(*otherClient, wants, farAway());
  ASSERT_TRUE(queued(1));
  const auto listed = capability<WaiterBrowsable>(*driver)->waiters({&key, 1}, deadline());
  ASSERT_EQ(listed.front().size(), 1U);
  EXPECT_EQ(listed.front().front().share, wants.share);
  EXPECT_EQ(listed.front().front().owner, wants.owner);
}

}  // namespace lockkeeper::testing
