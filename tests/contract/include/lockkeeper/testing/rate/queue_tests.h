#pragma once

#include <algorithm>
#include <thread>
#include <vector>

#include "lockkeeper/testing/rate/rate_fixture.h"

namespace lockkeeper::testing {

TEST_P(RateContract, AQueueGivesSlotsAtAConstantRateInTheOrderOfAsking) {
  const RatePolicy queue = policyOf(RateKind::leakyQueue, "1/h", 5);
  const RateOutcome first = reserve(queue);
  EXPECT_EQ(first.slot, (RateTime{first.storeTime, 0})) << "an empty queue lets the first one go at once";
  RateTime before = first.slot;
  for (int count = 1; count < 5; ++count) {
    const RateOutcome next = reserve(queue);
    ASSERT_EQ(next.granted, 1);
    EXPECT_EQ(next.slot, queue.law().plus(before, {3'600'000'000, 0}));
    before = next.slot;
  }
  const RateOutcome full = reserve(queue);
  EXPECT_EQ(full.granted, 0) << "a full queue refuses at once";
  EXPECT_GT(full.retryAfter.count(), 0);
  EXPECT_LE(full.retryAfter, std::chrono::hours{1});
}

TEST_P(RateContract, AQueueRefusesASlotThatIsTooFar) {
  const RatePolicy queue = policyOf(RateKind::leakyQueue, "1/h", 5);
  ASSERT_EQ(reserve(queue).granted, 1);
  const RateOutcome far = reserve(queue, std::chrono::minutes{30});
  EXPECT_EQ(far.granted, 0);
  EXPECT_GT(far.retryAfter, std::chrono::minutes{29});
  EXPECT_LE(far.retryAfter, std::chrono::minutes{30});
  EXPECT_EQ(reserve(queue, std::chrono::minutes{60}).granted, 1);
  EXPECT_EQ(reserve(queue, microseconds{0}).granted, 0) << "that is: only without waiting";
}

TEST_P(RateContract, TheLastSlotOfAQueueCanBeGivenBack) {
  const RatePolicy queue = policyOf(RateKind::leakyQueue, "1/h", 5);
  const RateOutcome first = reserve(queue), second = reserve(queue), third = reserve(queue);
  EXPECT_FALSE(giveBack(queue, second)) << "somebody has queued behind it";
  EXPECT_TRUE(giveBack(queue, third));
  EXPECT_FALSE(giveBack(queue, third)) << "once is enough";
  EXPECT_TRUE(giveBack(queue, second));
  EXPECT_EQ(reserve(queue).slot, second.slot);
  EXPECT_FALSE(giveBack(queue, first));
}

TEST_P(RateContract, SlotsOfManyClientsNeverComeTooClose) {
  constexpr int clients = 4;
  constexpr int each = 50;
  const RatePolicy queue = policyOf(RateKind::leakyQueue, "3000/s", 1'000'000);
  std::vector<std::vector<RateTime>> found(clients);
  {
    std::vector<std::jthread> threads;
    for (std::vector<RateTime>& slots : found) {
      threads.emplace_back([&] {
        const auto client = openClient();
        for (int count = 0; count < each; ++count) {
          RateCharge charge{.key = key, .law = &queue.law(), .longestWait = microseconds::max()};
          client->take({&charge, 1}, deadline());
          slots.push_back(charge.outcome.slot);
        }
      });
    }
  }
  std::vector<RateTime> all;
  for (const auto& slots : found) {
    EXPECT_TRUE(std::is_sorted(slots.begin(), slots.end())) << "first come, first served";
    all.insert(all.end(), slots.begin(), slots.end());
  }
  std::sort(all.begin(), all.end());
  for (std::size_t index = 1; index < all.size(); ++index) {
    EXPECT_GE(all[index], queue.law().plus(all[index - 1], queue.law().lengthOf(1)));
  }
}

}  // namespace lockkeeper::testing
