#pragma once

#include "lockkeeper/error.h"
#include "lockkeeper/testing/rate/rate_fixture.h"
#include "lockkeeper/testing/treacherous_keys.h"

namespace lockkeeper::testing {

constexpr RateKind allKinds[] = {RateKind::tokenBucket, RateKind::leakyQueue, RateKind::slidingWindow,
                                 RateKind::fixedWindow};

TEST_P(RateContract, AFreshKeyHasItsWholeLimit) {
  for (const RateKind kind : allKinds) {
    const RatePolicy policy = policyOf(kind, "5/h");
    const std::string fresh = uniqueKey();
    RateCharge charge{.key = fresh, .law = &policy.law()};
    driver->peek({&charge, 1}, deadline());
    EXPECT_EQ(charge.outcome.granted, 1);
    EXPECT_EQ(charge.outcome.remaining, 5);
    EXPECT_EQ(charge.outcome.resetAfter.count(), 0);
    EXPECT_EQ(charge.outcome.retryAfter.count(), 0);
  }
}

TEST_P(RateContract, GrantsTheLimitAndNoMore) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow}) {
    const RatePolicy policy = policyOf(kind, "5/day");
    const std::string fresh = uniqueKey();
    for (std::int64_t left = 4; left >= 0; --left) {
      const RateOutcome outcome = take(*driver, fresh, policy);
      EXPECT_EQ(outcome.granted, 1) << toString(kind);
      EXPECT_EQ(outcome.remaining, left) << toString(kind);
    }
    const RateOutcome refused = take(*otherClient, fresh, policy);
    EXPECT_EQ(refused.granted, 0) << toString(kind);
    EXPECT_GT(refused.retryAfter.count(), 0) << toString(kind);
    EXPECT_LE(refused.retryAfter, refused.resetAfter) << toString(kind);
  }
}

TEST_P(RateContract, ARefusalChangesNothing) {
  for (const RateKind kind : allKinds) {
    const RatePolicy policy = policyOf(kind, "3/day");
    const std::string fresh = uniqueKey();
    const RateOutcome granted = take(*driver, fresh, policy, 2);
    for (int count = 0; count < 5; ++count) {
      const RateOutcome refused = take(*driver, fresh, policy, 2);
      EXPECT_EQ(refused.granted, 0) << toString(kind);
      EXPECT_EQ(refused.remaining, 1) << toString(kind);
      EXPECT_EQ(resetTime(refused), resetTime(granted)) << toString(kind);
    }
  }
}

TEST_P(RateContract, OneCallOfManyIsManyCallsOfOne) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow}) {
    const RatePolicy policy = policyOf(kind, "10/day");
    const std::string apart = uniqueKey(), asOne = uniqueKey(), asTimes = uniqueKey();
    const RateOutcome first = take(*driver, apart, policy);
    RateOutcome last = first;
    for (int count = 0; count < 6; ++count) last = take(*driver, apart, policy);
    const RateOutcome one = take(*driver, asOne, policy, 7);
    const RateOutcome times = take(*driver, asTimes, policy, 1, 7);
    EXPECT_EQ(times.granted, 7);
    for (const RateOutcome& other : {one, times}) {
      EXPECT_EQ(other.remaining, last.remaining) << toString(kind);
      if (!isBucket(kind)) continue;
      EXPECT_EQ(resetTime(other) - other.storeTime, resetTime(last) - first.storeTime) << toString(kind);
    }
    EXPECT_EQ(take(*driver, asTimes, policy, 2, 5).granted, 1) << "as many as fit";
  }
}

TEST_P(RateContract, ACostOfNothingIsAlwaysAllowed) {
  for (const RateKind kind : allKinds) {
    const RatePolicy policy = policyOf(kind, "3/day");
    const std::string fresh = uniqueKey();
    const RateOutcome full = take(*driver, fresh, policy, 3);
    ASSERT_EQ(full.granted, 1);
    const RateOutcome nothing = take(*driver, fresh, policy, 0);
    EXPECT_EQ(nothing.granted, 1) << toString(kind);
    EXPECT_EQ(nothing.remaining, 0) << toString(kind);
    EXPECT_EQ(resetTime(nothing), resetTime(full)) << toString(kind);
  }
}

TEST_P(RateContract, WhoWaitsAsLongAsItIsToldIsAllowed) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    const RatePolicy policy = policyOf(kind, "3/100ms");
    const std::string fresh = uniqueKey();
    RateOutcome outcome = take(*driver, fresh, policy);
    for (int count = 0; count < 100 && outcome.granted == 1; ++count) outcome = take(*driver, fresh, policy);
    ASSERT_EQ(outcome.granted, 0) << toString(kind);
    EXPECT_LE(outcome.retryAfter, milliseconds{100}) << toString(kind);
    pass(outcome.retryAfter);
    EXPECT_EQ(take(*driver, fresh, policy).granted, 1) << toString(kind);
  }
}

TEST_P(RateContract, ForgetsWhatWasReset) {
  for (const RateKind kind : allKinds) {
    const RatePolicy policy = policyOf(kind, "3/day");
    const std::string fresh = uniqueKey();
    ASSERT_EQ(take(*driver, fresh, policy, 3).granted, 1);
    driver->reset(fresh, kind, deadline());
    EXPECT_EQ(take(*otherClient, fresh, policy, 3).granted, 1) << toString(kind);
  }
}

TEST_P(RateContract, ExtremeLawsAreExact) {
  const RatePolicy slow = bucket("1/day", 36'525);
  const RateOutcome all = take(slow, 36'525);
  EXPECT_EQ(all.granted, 1);
  EXPECT_EQ(all.resetAfter, std::chrono::days{36'525});
  EXPECT_EQ(take(slow).granted, 0);

  const RatePolicy fast = bucket("1000000/s", 1);
  const std::string other = uniqueKey();
  for (int count = 0; count < 100; ++count) {
    const RateOutcome outcome = take(*driver, other, fast);
    EXPECT_EQ(outcome.retryAfter.count(), outcome.granted == 1 ? 0 : 1);
    pass(microseconds{1});
  }
  const RatePolicy faster = bucket("1000000000/s", 1'000'000'000);
  const RateOutcome billion = take(*driver, uniqueKey(), faster, 1'000'000'000);
  EXPECT_EQ(billion.granted, 1);
  EXPECT_EQ(billion.resetAfter, std::chrono::seconds{1});
}

TEST_P(RateContract, EveryByteSequenceIsALimitOfItsOwn) {
  const RatePolicy policy = bucket("1/day", 2);
  const std::string space = uniqueKey().substr(0, 20) + ":";
  for (const std::string& text : treacherousKeys()) {
    EXPECT_EQ(take(*driver, space + text, policy).remaining, 1)
        << quoted(text) << " is taken for another key";
  }
  for (const std::string& text : treacherousKeys()) {
    EXPECT_EQ(take(*otherClient, space + text, policy).remaining, 0) << quoted(text);
  }
}

TEST_P(RateContract, AClientsClockChangesNothing) {
  if (GetParam().clockIsTheStores) GTEST_SKIP() << "the client's clock is the store's";
  class Skewed final : public Clock {
   public:
    explicit Skewed(std::chrono::hours by) : by_(by) {}
    Instant now() const noexcept override { return systemClock()->now() + by_; }
    void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
      systemClock()->wait(held, wakeUp, until == Instant::max() ? until : until - by_);
    }

   private:
    const std::chrono::hours by_;
  };
  const RatePolicy policy = bucket("1/day", 10);
  std::int64_t granted = 0, last = 0;
  for (int turn = 0; turn < 12; ++turn) {
    const auto clock = std::make_shared<Skewed>(std::chrono::hours{turn % 2 == 0 ? 1 : -1});
    RateCharge charge{.key = key, .law = &policy.law()};
    GetParam().open(clock)->take({&charge, 1}, clock->now() + std::chrono::seconds{10});
    granted += charge.outcome.granted;
    EXPECT_GE(charge.outcome.storeTime, last);
    last = charge.outcome.storeTime;
  }
  EXPECT_EQ(granted, 10);
}

}  // namespace lockkeeper::testing
