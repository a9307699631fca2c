#pragma once

#include "lockkeeper/testing/rate/law_tests.h"

namespace lockkeeper::testing {

TEST_P(RateContract, WhatWasNotUsedCanBeGivenBack) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    const RatePolicy policy = policyOf(kind, "5/366d", isBucket(kind) ? 5 : 0);
    const std::string fresh = uniqueKey();
    ASSERT_EQ(take(*driver, fresh, policy, 5).granted, 1);
    ASSERT_EQ(take(*driver, fresh, policy).granted, 0);
    EXPECT_TRUE(driver->refund({.key = fresh, .law = &policy.law(), .cost = 2}, deadline()));
    EXPECT_EQ(take(*driver, fresh, policy, 3).granted, 0) << toString(kind);
    EXPECT_EQ(take(*driver, fresh, policy, 2).granted, 1) << toString(kind);
  }
}

TEST_P(RateContract, ARefundNeverFillsBeyondTheLimit) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    const RatePolicy policy = policyOf(kind, "5/366d", isBucket(kind) ? 5 : 0);
    const std::string fresh = uniqueKey();
    const RateRefund all{.key = fresh, .law = &policy.law(), .cost = 5};
    EXPECT_FALSE(driver->refund(all, deadline())) << toString(kind) << ": nothing was used";
    ASSERT_EQ(take(*driver, fresh, policy).granted, 1);
    EXPECT_TRUE(driver->refund(all, deadline())) << toString(kind);
    EXPECT_FALSE(driver->refund(all, deadline())) << toString(kind);
    const RateOutcome outcome = take(*driver, fresh, policy, 0);
    EXPECT_EQ(outcome.remaining, 5) << toString(kind);
    EXPECT_EQ(outcome.resetAfter.count(), 0) << toString(kind);
  }
}

TEST_P(RateContract, ARefundToASlidingWindowGivesBackTheOldestUnit) {
  const RatePolicy policy = policyOf(RateKind::slidingWindow, "2/366d");
  const std::string fresh = uniqueKey();
  ASSERT_EQ(take(*driver, fresh, policy).granted, 1);
  pass(milliseconds{2});
  const RateOutcome newest = take(*driver, fresh, policy);
  ASSERT_EQ(newest.granted, 1);
  ASSERT_TRUE(driver->refund({.key = fresh, .law = &policy.law()}, deadline()));
  const RateOutcome left = take(*driver, fresh, policy, 0);
  EXPECT_EQ(left.remaining, 1);
  EXPECT_EQ(left.resetAfter.count(), newest.storeTime + policy.law().period - left.storeTime);
}

TEST_P(RateContract, WhatRanOutCannotBeGivenBack) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    const RatePolicy policy = policyOf(kind, "5/20ms");
    const std::string fresh = uniqueKey();
    ASSERT_EQ(take(*driver, fresh, policy, 5).granted, 1);
    pass(milliseconds{40});
    EXPECT_FALSE(driver->refund({.key = fresh, .law = &policy.law()}, deadline())) << toString(kind);
    EXPECT_EQ(take(*driver, fresh, policy, 0).remaining, 5) << toString(kind);
  }
}

}  // namespace lockkeeper::testing
