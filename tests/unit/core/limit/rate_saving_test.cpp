// What a limiter saves: questions whose answer is known, and questions that others ask at the same moment.

#include <algorithm>
#include <atomic>

#include "rate_fixture.h"

namespace lockkeeper::test {
namespace {

using KnownRefusals = RateFixture;
using AskingTogether = RateFixture;

TEST_F(KnownRefusals, AreNotAskedForAgainBeforeTheirTime) {
  const RatePolicy sms = limit("1/s");
  ASSERT_TRUE(limiter.take("k", sms));
  ASSERT_FALSE(limiter.take("k", sms));
  const int asked = network->calls();
  clock->advance(400ms);
  const Decision known = limiter.take("k", sms);
  EXPECT_FALSE(known.allowed);
  EXPECT_EQ(known.retryAfter, 600ms);
  EXPECT_EQ(known.resetAfter, 600ms);
  EXPECT_FALSE(known.outage);
  EXPECT_EQ(network->calls(), asked);
  clock->advance(600ms);
  EXPECT_TRUE(limiter.take("k", sms));
  EXPECT_EQ(network->calls(), asked + 1);
}

TEST_F(KnownRefusals, AreOfOneKeyOneCostAndOneLaw) {
  const RatePolicy sms = limit("1/s", {.burst = 3});
  ASSERT_TRUE(limiter.take("k", sms, 2));
  ASSERT_FALSE(limiter.take("k", sms, 2));
  EXPECT_TRUE(limiter.take("l", sms, 2));
  EXPECT_TRUE(limiter.take("k", sms, 1)) << "a smaller cost may fit";
  EXPECT_TRUE(limiter.take("k", limit("1/s", {.burst = 10}), 2)) << "a changed policy may allow more";
}

TEST_F(KnownRefusals, AreForgottenAfterARefundOrAReset) {
  const RatePolicy sms = limit("1/h");
  ASSERT_TRUE(limiter.take("k", sms));
  ASSERT_FALSE(limiter.take("k", sms));
  EXPECT_TRUE(limiter.refund("k", sms));
  EXPECT_TRUE(limiter.take("k", sms));
  ASSERT_FALSE(limiter.take("k", sms));
  limiter.reset("k", sms);
  EXPECT_TRUE(limiter.take("k", sms));
}

TEST_F(KnownRefusals, DoNotOutliveARefundThatCameWhileTheAnswerWasUnderWay) {
  const RatePolicy sms = limit("1/h");
  ASSERT_TRUE(limiter.take("k", sms));
  network->holdAnswers();
  auto refused = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(network->awaitHeld(1));  // decided, not yet received
  EXPECT_TRUE(limiter.refund("k", sms));
  network->release();
  EXPECT_FALSE(refused.get().allowed);
  EXPECT_TRUE(limiter.take("k", sms)) << "the refusal was older than the refund";
}

TEST_F(KnownRefusals, AreBoundedInNumber) {
  const RatePolicy sms = limit("1/h");
  constexpr int keys = 40'000;
  for (int key = 0; key < keys; ++key) {
    (void)limiter.take(std::to_string(key), sms);
    (void)limiter.take(std::to_string(key), sms);
  }
  const int asked = network->calls();
  for (int key = 0; key < keys; ++key) EXPECT_FALSE(limiter.take(std::to_string(key), sms));
  const int again = network->calls() - asked;
  EXPECT_GT(again, keys / 2) << "most were not remembered";
  EXPECT_LT(again, keys) << "some were";
}

TEST_F(AskingTogether, CallersOfOneKeyAreOneQuestionAndShareItsAnswerInTheirOrder) {
  constexpr int callers = 20;
  const RatePolicy sms = limit("1/h", {.burst = 11});
  network->hold();
  auto first = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(network->awaitHeld(1));
  std::vector<std::future<Decision>> rest;
  for (int caller = 0; caller < callers; ++caller) {
    rest.push_back(background([&] { return limiter.take("k", sms); }));
    ASSERT_TRUE(clock->awaitWaiters(rest.size())) << "in line, in this order";
  }
  network->release();
  EXPECT_EQ(first.get().remaining, 10);
  for (int caller = 0; caller < callers; ++caller) {
    const Decision decision = rest[static_cast<std::size_t>(caller)].get();
    EXPECT_EQ(decision.allowed, caller < 10);
    EXPECT_EQ(decision.remaining, caller < 10 ? 9 - caller : 0);
    EXPECT_EQ(decision.retryAfter, caller < 10 ? 0us : 1h);
  }
  EXPECT_EQ(network->times(), (std::vector<std::int64_t>{1, callers}));
}

TEST_F(AskingTogether, DifferentQuestionsAreAskedOneAfterTheOther) {
  const RatePolicy sms = limit("1/h", {.burst = 100});
  network->hold();
  auto first = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(network->awaitHeld(1));
  std::vector<std::future<Decision>> rest;
  for (const std::int64_t cost : {1, 1, 5, 5, 1}) {
    rest.push_back(background([&, cost] { return limiter.take("k", sms, cost); }));
    ASSERT_TRUE(clock->awaitWaiters(rest.size()));
  }
  network->release();
  std::vector<std::int64_t> remaining;
  for (auto& each : rest) remaining.push_back(each.get().remaining);
  EXPECT_EQ(remaining, (std::vector<std::int64_t>{98, 97, 92, 87, 86})) << "in the order of asking";
  EXPECT_EQ(network->times(), (std::vector<std::int64_t>{1, 2, 2, 1}));
}

TEST_F(AskingTogether, KeysDoNotWaitForEachOther) {
  const RatePolicy sms = limit("1/h");
  network->hold();
  std::vector<std::future<Decision>> all;
  for (int key = 0; key < 10; ++key) {
    all.push_back(background([&, key] { return limiter.take(std::to_string(key), sms); }));
  }
  ASSERT_TRUE(network->awaitHeld(10));
  network->release();
  for (auto& each : all) EXPECT_TRUE(each.get().allowed);
}

TEST_F(AskingTogether, AFailureIsEverybodysAndTheNextOneAsksAnew) {
  const RatePolicy sms = limit("1/h", {.burst = 10});
  network->hold();
  auto first = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(network->awaitHeld(1));
  auto second = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(clock->awaitWaiters(1));
  auto third = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(clock->awaitWaiters(2));
  network->fail();
  network->release();
  for (auto* each : {&first, &second, &third}) EXPECT_EQ(each->get().outage, ErrorCode::storeUnavailable);
  network->recover();
  clock->advance(5s);
  EXPECT_TRUE(limiter.take("k", sms).allowed);
}

TEST_F(AskingTogether, NobodyLosesMoreThanHalfOfItsTimeToAQuestionBeforeItsOwn) {
  const RatePolicy sms = limit("1/h", {.burst = 10});
  network->hold();
  auto first = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(network->awaitHeld(1));
  auto second = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(clock->awaitWaiters(1));
  clock->advance(operationTimeout / 2 - 1ms);
  auto third = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(clock->awaitWaiters(2));
  clock->advance(1ms);
  EXPECT_TRUE(network->awaitHeld(2)) << "though the first question is not answered";
  clock->advance(operationTimeout / 2 - 1ms);
  network->release();
  for (auto* each : {&first, &second, &third}) EXPECT_TRUE(each->get().allowed);
  EXPECT_EQ(network->times(), (std::vector<std::int64_t>{1, 2}));
  for (const auto left : network->leftToAnswer()) EXPECT_GE(left, operationTimeout / 2);
}

TEST_F(AskingTogether, NobodyWaitsForAnothersQuestionBeyondItsOwnTime) {
  const RatePolicy sms = limit("1/h", {.burst = 10});
  network->hold();
  auto first = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(network->awaitHeld(1));
  std::vector<std::future<Decision>> rest;
  for (int caller = 0; caller < 5; ++caller) {
    rest.push_back(background([&] { return limiter.take("k", sms); }));
    ASSERT_TRUE(clock->awaitWaiters(rest.size()));
  }
  clock->advance(operationTimeout / 2);
  ASSERT_TRUE(network->awaitHeld(2));
  ASSERT_TRUE(clock->awaitWaiters(4)) << "for the one who asks";
  clock->advance(operationTimeout / 2);
  int ended = 0;
  const auto hasEnded = [](auto& call) { return call.wait_for(0s) == std::future_status::ready; };
  while (ended < 4) ended = static_cast<int>(std::count_if(rest.begin(), rest.end(), hasEnded));
  for (auto& each : rest) {
    if (hasEnded(each)) {
      EXPECT_EQ(each.get().outage, ErrorCode::outcomeUnknown);
    }
  }
  network->release();
}

TEST_F(AskingTogether, WhatIsChargedIsWhatIsAllowedHoweverManyCallAtOnce) {
  const RatePolicy sms = limit("1/h", {.burst = 700});
  std::atomic<std::int64_t> allowed = 0;
  std::vector<std::future<void>> all;
  for (int caller = 0; caller < 16; ++caller) {
    all.push_back(background([&, cost = std::int64_t{caller % 3 + 1}] {
      for (int call = 0; call < 20; ++call) {
        if (limiter.take("k", sms, cost)) allowed += cost;
      }
    }));
  }
  for (auto& each : all) each.get();
  EXPECT_EQ(other.peek("k", sms).remaining, 700 - allowed);
}

}  // namespace
}  // namespace lockkeeper::test
