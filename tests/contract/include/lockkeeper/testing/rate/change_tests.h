#pragma once

#include "lockkeeper/testing/rate/admissions.h"
#include "lockkeeper/testing/rate/rate_fixture.h"

namespace lockkeeper::testing {

// What a changed policy finds of a key: docs/rate-limiting.md promises it.

TEST_P(RateContract, AChangedBucketIsFullAtTheSameTime) {
  const RatePolicy before = bucket("1/day", 10);
  const RateOutcome emptied = take(before, 10);
  for (const RatePolicy& after : {bucket("1/day", 20), bucket("1/h", 10), bucket("7/day", 70)}) {
    const RateOutcome found = take(after, 0);
    EXPECT_EQ(resetTime(found), resetTime(emptied));
  }
  EXPECT_EQ(take(bucket("1/day", 20), 0).remaining, 10) << "what the bucket has grown by is there at once";
  EXPECT_EQ(take(bucket("1/day", 5)).granted, 0);
}

TEST_P(RateContract, ALimitThatIsChangedToAndFroAdmitsNoMoreThanItsLargest) {
  const RatePolicy small = bucket("2000/s", 10), large = bucket("2000/s", 40);
  std::vector<Admission> admissions;
  for (int count = 0; count < 400; ++count) {
    const RateOutcome outcome = take(count % 2 == 0 ? large : small);
    if (outcome.granted == 1) admissions.push_back({outcome.storeTime, 1});
    if (count % 10 == 0) pass(microseconds{500});
  }
  EXPECT_TRUE(keepsEveryWindow(large.law(), admissions));
  EXPECT_GE(admissions.size(), 40U);
}

TEST_P(RateContract, AnotherDenominatorCostsLessThanAMicrosecond) {
  const RatePolicy thirds = bucket("3/day", 30), sevenths = bucket("7/day", 70);
  const RateOutcome emptied = take(thirds, 29);
  const RateOutcome found = take(sevenths, 0);
  EXPECT_NEAR(static_cast<double>(resetTime(found)), static_cast<double>(resetTime(emptied)), 1);
}

TEST_P(RateContract, TheBucketKindsShareOneState) {
  ASSERT_EQ(take(bucket("1/day", 10), 10).granted, 1);
  EXPECT_EQ(reserve(policyOf(RateKind::leakyQueue, "1/day", 10)).granted, 0);
  EXPECT_EQ(take(policyOf(RateKind::slidingWindow, "10/day")).granted, 1) << "a window counts anew";
}

TEST_P(RateContract, ASmallerWindowCountsWhatWasUsedBefore) {
  for (const RateKind kind : {RateKind::slidingWindow, RateKind::fixedWindow}) {
    const std::string fresh = uniqueKey();
    ASSERT_EQ(take(*driver, fresh, policyOf(kind, "10/366d"), 8).granted, 1);
    EXPECT_EQ(take(*driver, fresh, policyOf(kind, "5/366d")).granted, 0) << toString(kind);
    EXPECT_EQ(take(*driver, fresh, policyOf(kind, "20/366d"), 0).remaining, 12) << toString(kind);
  }
}

}  // namespace lockkeeper::testing
