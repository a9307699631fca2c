#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, GrantsAFreeKeyWithoutWaiting) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  const Claimant who{key};
  const AcquireResult result = waitFor(who, farAway()).get();
  ASSERT_TRUE(std::holds_alternative<Granted>(result));
  EXPECT_EQ(release(who), ReleaseOutcome::released);
}

TEST_P(DriverContract, GrantsAWaitingClaimTheTtlThatItAskedForWhenTheHolderReleases) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  std::array<Claimant, 3> inOrder{{{key}, {key}, {key}}};
  auto former = grant(inOrder[0]);
  ASSERT_TRUE(former);
  // The first one that waits may be woken up in another way, while its client connects.
  for (std::size_t i = 1; i < inOrder.size(); ++i) {
    const Instant before = now();
    auto result = waitFor(inOrder[i], farAway());
    ASSERT_TRUE(queued(1));
    ASSERT_EQ(release(inOrder[i - 1]), ReleaseOutcome::released);
    const AcquireResult got = result.get();
    ASSERT_TRUE(std::holds_alternative<Granted>(got));
    const Granted granted = std::get<Granted>(got);
    EXPECT_GE(granted.leasedFor, longTtl);
    EXPECT_GE(granted.leasedFrom, before);
    EXPECT_LE(now() - granted.leasedFrom, longTtl / 4) << "the wait must not eat the lease";
    EXPECT_EQ(granted.fence.has_value(), former->fence.has_value());
    EXPECT_TRUE(!granted.fence || granted.fence > former->fence);
    const auto shown = holder(key);
    ASSERT_TRUE(shown);
    EXPECT_GT(shown->remaining.value_or(longTtl), longTtl / 2) << "the store must have given it, too";
    EXPECT_TRUE(keepsOutANewcomer({key}));
    EXPECT_EQ(renew(inOrder[i]), RenewOutcome::renewed);
    former = granted;
  }
  EXPECT_EQ(release(inOrder.back()), ReleaseOutcome::released);
}

TEST_P(DriverContract, GrantsAWaitingClaimWhenTheHoldersLeaseEnds) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  const Claimant holds{key};
  const Claimant waits{key};
  // Not renewed for less: GET_LOCK's server ends a session that nobody asks by its first length.
  const std::chrono::milliseconds ttl = 4 * shortTtl();
  const Instant granted = now();
  ASSERT_TRUE(grant(holds, ttl));
  auto result = waitFor(waits, farAway());
  ASSERT_TRUE(queued(1));
  GetParam().advance(ttl + std::chrono::milliseconds{1});
  EXPECT_TRUE(std::holds_alternative<Granted>(result.get()));
  EXPECT_GE(now(), granted + ttl);
  EXPECT_EQ(release(waits), ReleaseOutcome::released);
}

TEST_P(DriverContract, ServesWaitingClaimsInTheirOrder) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  if (!GetParam().queued) GTEST_SKIP() << "the factory cannot tell how many claims wait";
  const Claimant holds{key};
  const std::vector<Claimant> inOrder{{key}, {key}, {key}, {key}};
  ASSERT_TRUE(grant(holds));
  const Instant began = now();
  std::vector<Waiting> results;
  for (std::size_t i = 0; i < inOrder.size(); ++i) {
    results.push_back(waitFor(inOrder[i], farAway()));
    ASSERT_TRUE(queued(i + 1));
  }
  ASSERT_EQ(release(holds), ReleaseOutcome::released);
  std::vector<std::size_t> served;
  while (served.size() < inOrder.size()) {
    const std::size_t next = nextOf(results);
    ASSERT_LT(next, inOrder.size()) << "nobody is served";
    ASSERT_TRUE(std::holds_alternative<Granted>(results[next].get()));
    served.push_back(next);
    EXPECT_TRUE(queued(inOrder.size() - served.size())) << "only one of the queue may have been served";
    ASSERT_EQ(release(inOrder[next]), ReleaseOutcome::released);
  }
  EXPECT_TRUE(std::ranges::is_sorted(served) || mayHaveLostAPlace(began));
}

TEST_P(DriverContract, EndsTheWaitWhenItsTimeHasCome) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  const Claimant holds{key};
  ASSERT_TRUE(grant(holds));
  // Long enough to be seen in the queue of a slow store.
  constexpr std::chrono::milliseconds length{1000};
  const Instant until = now() + length;
  const Claimant waits{key};
  auto result = waitFor(waits, until);
  (void)isSeenWaiting(result);
  GetParam().advance(length);
  EXPECT_TRUE(std::holds_alternative<Busy>(result.get()));
  EXPECT_GE(now(), until);
  ASSERT_EQ(release(holds), ReleaseOutcome::released);
  EXPECT_FALSE(holder(key)) << "a claim that has given up must not be served";
}

TEST_P(DriverContract, EndsTheWaitWhenToldToStop) {
  if (!GetParam().waitable) GTEST_SKIP() << notWaitable;
  const Claimant holds{key};
  ASSERT_TRUE(grant(holds));
  const Claimant waits{key};
  auto result = waitFor(waits, farAway());
  ASSERT_TRUE(queued(1));
  result.stop();
  EXPECT_TRUE(std::holds_alternative<Busy>(result.get()));
  ASSERT_EQ(release(holds), ReleaseOutcome::released);
  EXPECT_FALSE(holder(key)) << "a claim that has given up must not be served";
}

}  // namespace lockkeeper::testing
