#include <gtest/gtest.h>

#include <random>

#include "lockkeeper/limit/rate_rules.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/testing/rate/admissions.h"
#include "lockkeeper/testing/rate/rate_fixture.h"

namespace lockkeeper::test {

using lockkeeper::testing::Admission;
using lockkeeper::testing::bucket;
using lockkeeper::testing::fullestWindow;
using lockkeeper::testing::keepsEveryWindow;
using lockkeeper::testing::policyOf;
namespace {

// What must hold when the store's clock goes back, which no store in a test can be made to do at will.

TEST(ClockThatGoesBack, RefusesMoreAndNeverLess) {
  for (const RatePolicy& policy :
       {bucket("2000/s", 10), bucket("7/3ms", 5), policyOf(RateKind::fixedWindow, "10/5ms")}) {
    std::mt19937_64 random(3);
    std::int64_t store = 1'700'000'000'000'000,
                 real = store;  // the store's clock is never ahead of the real one
    RateState state;
    std::vector<Admission> admissions;
    int backwards = 0;
    for (int step = 0; step < 200'000; ++step) {
      const auto pause = static_cast<std::int64_t>(random() % 300);
      real += pause;
      store += pause;
      if (random() % 1000 == 0) {
        store -= static_cast<std::int64_t>(random() % 20'000);
        ++backwards;
      }
      const RateCharge charge{.key = "k", .law = &policy.law()};
      if (admit(charge, state, store) == 1) admissions.push_back({real, 1});
    }
    EXPECT_GT(backwards, 100);
    EXPECT_GT(admissions.size(), 1000U);
    if (isBucket(policy.law().kind)) {
      EXPECT_TRUE(keepsEveryWindow(policy.law(), admissions));
    } else {
      // By the real time, the store's windows can only be longer than the calendar's.
      RateLaw sliding = policy.law();
      sliding.kind = RateKind::slidingWindow;
      EXPECT_LE(fullestWindow(sliding, admissions), 2 * policy.limit());
    }
  }
}

TEST(ClockThatGoesBack, IsCaughtUpWithBeforeABucketGainsAnything) {
  const RatePolicy policy = bucket("1/s", 1);
  RateState state;
  const RateCharge charge{.key = "k", .law = &policy.law()};
  EXPECT_EQ(admit(charge, state, 10'000'000), 1);
  EXPECT_EQ(admit(charge, state, 9'000'000), 0);
  EXPECT_EQ(outcomeOf(charge, {.state = state, .now = 9'000'000}).retryAfter.count(), 2'000'000);
  EXPECT_EQ(admit(charge, state, 11'000'000), 1);
}

TEST(LeakyQueue, OnlyItsLastSlotIsGivenBack) {
  const RatePolicy policy("queue",
                          {.kind = RateKind::leakyQueue, .rate = {1, std::chrono::seconds{1}}, .burst = 3});
  RateState state;
  const RateCharge charge{.key = "k", .law = &policy.law(), .longestWait = std::chrono::seconds{10}};
  const auto slot = [&] {
    EXPECT_EQ(admit(charge, state, 10'000'000), 1);
    return outcomeOf(charge, {.state = state, .now = 10'000'000, .granted = 1}).slot;
  };
  const RateTime first = slot();
  const RateTime second = slot();
  EXPECT_FALSE(applyRefund({.key = "k", .law = &policy.law(), .slot = first}, state, 10'000'000))
      << "somebody has come behind it";
  EXPECT_TRUE(applyRefund({.key = "k", .law = &policy.law(), .slot = second}, state, 10'000'000));
  EXPECT_TRUE(applyRefund({.key = "k", .law = &policy.law(), .slot = first}, state, 10'000'000));
  EXPECT_EQ(slot(), first);
}

TEST(SlidingWindow, ARefundOfSomebodyElseLetsNoWindowAdmitMore) {
  const RatePolicy policy = policyOf(RateKind::slidingWindow, "2/10s");
  const RateCharge charge{.key = "k", .law = &policy.law()};
  RateLog log;
  const auto admitAt = [&](std::int64_t seconds) { return admit(charge, log, seconds * 1'000'000).granted; };
  EXPECT_EQ(admitAt(100), 1);
  EXPECT_EQ(admitAt(109), 1) << "somebody else's";
  EXPECT_TRUE(applyRefund({.key = "k", .law = &policy.law()}, log, 109'500'000)) << "by the first one";
  EXPECT_EQ(admitAt(110), 1);
  EXPECT_EQ(admitAt(111), 0) << "109, 110 and 111 are in one window";
  EXPECT_EQ(admitAt(119), 1);
}

TEST(SlidingWindow, ARefundTakesNothingThatCountsNoMore) {
  const RatePolicy policy = policyOf(RateKind::slidingWindow, "3/10s");
  RateLog log{100'000'000, 105'000'000, 109'000'000};
  EXPECT_TRUE(applyRefund({.key = "k", .law = &policy.law()}, log, 111'000'000));
  EXPECT_EQ(log, RateLog{109'000'000});
  EXPECT_TRUE(applyRefund({.key = "k", .law = &policy.law(), .cost = 3}, log, 111'000'000))
      << "what there was";
  EXPECT_FALSE(applyRefund({.key = "k", .law = &policy.law()}, log, 111'000'000));
}

}  // namespace
}  // namespace lockkeeper::test
