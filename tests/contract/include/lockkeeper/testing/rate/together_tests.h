#pragma once

#include <array>
#include <thread>
#include <vector>

#include "lockkeeper/testing/rate/rate_fixture.h"

namespace lockkeeper::testing {

TEST_P(RateContract, SeveralLimitsAreChargedTogetherOrNotAtAll) {
  const RatePolicy user = bucket("5/day"), address = policyOf(RateKind::slidingWindow, "3/day"),
                   everybody = policyOf(RateKind::fixedWindow, "1000/366d");
  const std::string tag = GetParam().commonTag;
  const std::string mine = uniqueKey() + tag, theirs = uniqueKey() + tag, all = uniqueKey() + tag;
  const auto ask = [&] {
    std::array charges{RateCharge{.key = mine, .law = &user.law()},
                       RateCharge{.key = theirs, .law = &address.law()},
                       RateCharge{.key = all, .law = &everybody.law(), .cost = 10}};
    driver->take(charges, deadline());
    return charges;
  };
  for (int count = 1; count <= 3; ++count) {
    const auto charges = ask();
    EXPECT_EQ(charges[0].outcome.granted, 1);
    EXPECT_EQ(charges[0].outcome.remaining, 5 - count);
    EXPECT_EQ(charges[1].outcome.remaining, 3 - count);
    EXPECT_EQ(charges[2].outcome.remaining, 1000 - 10 * count);
  }
  for (int count = 0; count < 3; ++count) {
    const auto refused = ask();
    EXPECT_EQ(refused[0].outcome.granted, 1) << "it would fit";
    EXPECT_EQ(refused[1].outcome.granted, 0) << "this one refuses";
    EXPECT_EQ(refused[2].outcome.granted, 1);
    EXPECT_EQ(refused[0].outcome.remaining, 2) << "but nobody is charged";
    EXPECT_EQ(refused[2].outcome.remaining, 970);
    EXPECT_GT(refused[1].outcome.retryAfter.count(), 0);
    EXPECT_EQ(refused[0].outcome.retryAfter.count(), 0);
  }
}

TEST_P(RateContract, CallsThatShareLimitsInEveryOrderLoseNothing) {
  constexpr int callers = 4;
  constexpr int calls = 25;
  const RatePolicy policy = bucket("1/day", 10'000);
  const std::string left = uniqueKey() + GetParam().commonTag, right = uniqueKey() + GetParam().commonTag;
  {
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < callers; ++caller) {
      threads.emplace_back([&, caller] {
        const auto client = openClient();
        for (int count = 0; count < calls; ++count) {
          std::array charges{RateCharge{.key = caller % 2 == 0 ? left : right, .law = &policy.law()},
                             RateCharge{.key = caller % 2 == 0 ? right : left, .law = &policy.law()}};
          client->take(charges, deadline());
          EXPECT_EQ(charges[0].outcome.granted, 1);
        }
      });
    }
  }
  EXPECT_EQ(take(*driver, left, policy, 0).remaining, 10'000 - callers * calls);
  EXPECT_EQ(take(*driver, right, policy, 0).remaining, 10'000 - callers * calls);
}

}  // namespace lockkeeper::testing
