#pragma once

#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/testing/contract/driver_fixture.h"
#include "lockkeeper/testing/noted_losses.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, BreakingALockFreesItsKey) {
  if (!GetParam().breakable) GTEST_SKIP() << notBreakable;
  ASSERT_TRUE(grant({key}));
  EXPECT_TRUE(breakLock(key));
  EXPECT_FALSE(holder(key));
  EXPECT_TRUE(grant({key}));
}

TEST_P(DriverContract, BreakingTheHolderThatWasShownLeavesALaterOne) {
  if (!GetParam().breakable) GTEST_SKIP() << notBreakable;
  const Claimant first{key};
  ASSERT_TRUE(grant(first));
  const auto shown = holder(key);
  ASSERT_TRUE(shown);
  ASSERT_EQ(renew(first), RenewOutcome::renewed);
  EXPECT_TRUE(breakLock(key, &*shown)) << "a renewed lock is still the same one";
  EXPECT_FALSE(breakLock(key, &*shown));
  const Claimant second{key};
  ASSERT_TRUE(grant(second));
  EXPECT_FALSE(breakLock(key, &*shown));
  EXPECT_TRUE(holder(key));
  EXPECT_EQ(release(second), ReleaseOutcome::released);
}

TEST_P(DriverContract, BreakingAFreeKeySaysThatThereWasNothing) {
  if (!GetParam().breakable) GTEST_SKIP() << notBreakable;
  EXPECT_FALSE(breakLock(key));
  EXPECT_TRUE(grant({key}));
}

TEST_P(DriverContract, ABrokenHolderOwnsNothing) {
  if (!GetParam().breakable) GTEST_SKIP() << notBreakable;
  const Claimant broken{key};
  ASSERT_TRUE(grant(broken));
  ASSERT_TRUE(breakLock(key));
  EXPECT_EQ(renew(broken), renewalOfNothing());
  EXPECT_EQ(release(broken), releaseOfNothing());
}

TEST_P(DriverContract, ABrokenHolderIsReportedAtOnceWhereTheStoreTells) {
  if (!GetParam().breakable || !GetParam().reportsLosses) GTEST_SKIP() << "the store cannot tell";
  const auto losses = std::make_shared<NotedLosses>();
  capability<LossReporting>(*driver)->addLossListener(losses);
  const Claimant broken{key};
  ASSERT_TRUE(grant(broken));
  ASSERT_TRUE(breakLock(key));
  EXPECT_EQ(losses->noted(), std::vector{broken.token});
  EXPECT_TRUE(grant({key}));
}

TEST_P(DriverContract, BreakingOneLockLeavesTheOthers) {
  if (!GetParam().breakable) GTEST_SKIP() << notBreakable;
  const Claimant neighbour{key + "/1"};
  ASSERT_TRUE(grant({key}));
  ASSERT_TRUE(grant(neighbour));
  ASSERT_TRUE(breakLock(key));
  EXPECT_EQ(release(neighbour), ReleaseOutcome::released);
}

}  // namespace lockkeeper::testing
