#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/testing/rate/chain_tests.h"

namespace lockkeeper::testing {

// The limiter on the store: what it saves up must not show.

inline RateLimiter limiterOn(std::shared_ptr<RateDriver> driver, std::string space = "",
                             std::shared_ptr<Clock> clock = systemClock()) {
  RateLimiterOptions options{.keyNamespace = std::move(space), .operationTimeout = std::chrono::seconds{10}};
  options.environment.clock = std::move(clock);
  return RateLimiter(std::move(driver), std::move(options));
}

TEST_P(RateContract, ManyThreadsOfOneLimiterGetExactlyTheLimit) {
  constexpr int threads = 16;
  constexpr int calls = 50;
  const RatePolicy policy = bucket("1/day", 500);
  RateLimiter limiter = limiterOn(driver, "", GetParam().clock);
  std::atomic<int> allowed = 0;
  std::atomic<std::int64_t> remaining = 0;
  {
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&] {
        for (int call = 0; call < calls; ++call) {
          const Decision decision = limiter.take(key, policy);
          EXPECT_FALSE(decision.outage);
          if (!decision.allowed) continue;
          ++allowed;
          remaining += decision.remaining;
        }
      });
    }
  }
  EXPECT_EQ(allowed, 500);
  EXPECT_EQ(remaining, 499 * 500 / 2) << "each caller sees what was left after it, and no other";
}

TEST_P(RateContract, WhatWasRefusedIsAllowedAtOnceAfterARefundOrAReset) {
  const RatePolicy policy = bucket("1/day", 2);
  RateLimiter limiter = limiterOn(driver, "", GetParam().clock);
  EXPECT_TRUE(limiter.take(key, policy, 2));
  EXPECT_FALSE(limiter.take(key, policy));
  EXPECT_FALSE(limiter.take(key, policy));
  EXPECT_TRUE(limiter.refund(key, policy));
  EXPECT_TRUE(limiter.take(key, policy));
  EXPECT_FALSE(limiter.take(key, policy));
  limiter.reset(key, policy);
  EXPECT_TRUE(limiter.take(key, policy, 2));
}

TEST_P(RateContract, NamespacesAndPoliciesKeepLimitsApart) {
  const RatePolicy sms("sms", {.rate = Rate::parse("rate", "1/day")}), mail("mail", sms.options());
  RateLimiter plain = limiterOn(driver, "", GetParam().clock),
              shop = limiterOn(driver, "shop", GetParam().clock);
  EXPECT_TRUE(plain.take(key, sms));
  EXPECT_TRUE(plain.take(key, mail));
  EXPECT_TRUE(shop.take(key, sms));
  EXPECT_FALSE(shop.take(key, sms));
}

TEST_P(RateContract, ASharedLimitOverTwoLimitersIsOneLimit) {
  const RatePolicy policy = bucket("1/day", 10);
  RateLimiter one = limiterOn(driver, "", GetParam().clock),
              two = limiterOn(otherClient, "", GetParam().clock);
  int allowed = 0;
  for (int count = 0; count < 10; ++count) {
    if (one.take(key, policy)) ++allowed;
    if (two.take(key, policy)) ++allowed;
  }
  EXPECT_EQ(allowed, 10);
}

}  // namespace lockkeeper::testing
