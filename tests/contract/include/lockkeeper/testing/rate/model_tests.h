#pragma once

#include <random>

#include "lockkeeper/testing/rate/rate_fixture.h"
#include "lockkeeper/testing/rate/rate_model.h"

namespace lockkeeper::testing {

inline void expectSame(const RateOutcome& store, const RateOutcome& model) {
  EXPECT_EQ(store.granted, model.granted);
  EXPECT_EQ(store.remaining, model.remaining);
  EXPECT_EQ(store.retryAfter, model.retryAfter);
  EXPECT_EQ(store.resetAfter, model.resetAfter);
}

/// Laws with whole and with broken microseconds per unit, slow and fast ones.
inline std::vector<RatePolicy> variedPolicies() {
  std::vector<RatePolicy> policies;
  policies.push_back(policyOf(RateKind::tokenBucket, "1000/s", 10));
  policies.push_back(policyOf(RateKind::tokenBucket, "3000/s", 7));       // 333 1/3 µs
  policies.push_back(policyOf(RateKind::tokenBucket, "999983/s", 1000));  // a prime
  policies.push_back(policyOf(RateKind::tokenBucket, "7/3ms", 5));
  policies.push_back(policyOf(RateKind::tokenBucket, "1000000000/s", 100'000));
  policies.push_back(policyOf(RateKind::tokenBucket, "1/day", 36'525));
  policies.push_back(policyOf(RateKind::slidingWindow, "20/10ms"));
  policies.push_back(policyOf(RateKind::slidingWindow, "1/3ms"));
  policies.push_back(policyOf(RateKind::fixedWindow, "30/10ms"));
  policies.push_back(policyOf(RateKind::fixedWindow, "1000000000/366d"));
  return policies;
}

TEST_P(RateContract, AgreesBitForBitWithAModelReplayedOnItsOwnClock) {
  std::mt19937_64 random(20'240'607);
  const int steps = GetParam().arrivals / 50;
  std::int64_t granted = 0, refused = 0;
  for (const RatePolicy& policy : variedPolicies()) {
    SCOPED_TRACE(std::string(toString(policy.law().kind)) + " of " + std::to_string(policy.limit()) + ", " +
                 std::to_string(policy.law().period) + "/" + std::to_string(policy.law().parts));
    const std::string which = uniqueKey();
    RateModel model(policy.law());
    for (int step = 0; step < steps && !HasFailure(); ++step) {
      const auto upTo = [&](std::int64_t most) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
      };
      const std::int64_t cost = std::min(policy.limit(), upTo(4) == 0 ? upTo(policy.limit()) : upTo(3));
      RateCharge charge{.key = which, .law = &policy.law(), .cost = cost, .times = 1 + upTo(2)};
      if (upTo(20) == 0) {
        const std::int64_t before = take(*driver, which, policy, 0).storeTime;
        const bool given = driver->refund({.key = which, .law = &policy.law(), .cost = 1}, deadline());
        RateCharge after{.key = which, .law = &policy.law(), .cost = 0};
        driver->peek({&after, 1}, deadline());
        // The refund's own moment is not known. It matters only for whether something was used still, and
        // which units of a window: they have run out since, or are those of now.
        RateModel early = model;
        const bool earlyGiven = early.refund(1, before);
        EXPECT_TRUE(model.refund(1, after.outcome.storeTime) == given || earlyGiven == given);
        if (model.peek(0, after.outcome.storeTime).remaining != after.outcome.remaining) model = early;
        expectSame(after.outcome, model.peek(0, after.outcome.storeTime));
      } else if (upTo(10) == 0) {
        charge.times = 1;
        driver->peek({&charge, 1}, deadline());
        expectSame(charge.outcome, model.peek(cost, charge.outcome.storeTime));
      } else {
        driver->take({&charge, 1}, deadline());
        expectSame(charge.outcome, model.take(cost, charge.times, charge.outcome.storeTime));
        (charge.outcome.granted == charge.times ? granted : refused) += 1;
      }
      if (upTo(3) == 0) pass(microseconds{upTo(1500)});
    }
  }
  EXPECT_GT(granted, steps) << "nothing was tested";
  EXPECT_GT(refused, steps) << "nothing was tested";
}

}  // namespace lockkeeper::testing
