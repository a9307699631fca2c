#include "rate_fixture.h"

namespace lockkeeper::test {
namespace {

using RateOutage = RateFixture;

// Until the store is tried again, however long the pause was.
constexpr auto longestPause = 1s;

TEST_F(RateOutage, IsToldApartFromARefusal) {
  network->fail();
  const Decision closed = limiter.take("k", limit("5/h"));
  EXPECT_FALSE(closed.allowed);
  EXPECT_EQ(closed.outage, ErrorCode::storeUnavailable);
  EXPECT_GT(closed.retryAfter, 0us);
  EXPECT_LE(closed.retryAfter, longestPause);
  const Decision open = limiter.take("k", limit("5/h", {.outage = Outage::open}));
  EXPECT_TRUE(open.allowed);
  EXPECT_EQ(open.outage, ErrorCode::storeUnavailable);
  EXPECT_TRUE(limiter.take("k", limit("5/h"), 0).allowed) << "nothing is always allowed";
}

TEST_F(RateOutage, IsOneFailedCallNowAndThenAndNotOneForEachCaller) {
  const RatePolicy sms = limit("5/h");
  network->fail();
  for (int count = 0; count < 1000; ++count) EXPECT_FALSE(limiter.take(std::to_string(count), sms));
  EXPECT_EQ(network->calls(), 1);
  for (int seconds = 0; seconds < 100; ++seconds) {
    clock->advance(longestPause);
    for (int count = 0; count < 10; ++count) EXPECT_FALSE(limiter.take("k", sms));
  }
  EXPECT_GE(network->calls(), 50);
  EXPECT_LE(network->calls(), 101);
  network->recover();
  clock->advance(longestPause);
  EXPECT_TRUE(limiter.take("k", sms));
  EXPECT_FALSE(limiter.take("k", sms).outage);
}

// As when one master of a cluster has died.
TEST_F(RateOutage, OfOnePartOfTheStoreIsNoneOfTheOthers) {
  const RatePolicy sms = limit("5/h");
  network->fail();
  EXPECT_EQ(limiter.take("k", sms).outage, ErrorCode::storeUnavailable);
  network->recover();
  EXPECT_EQ(limiter.take("another", sms).outage, ErrorCode::storeUnavailable) << "it is not tried yet";
  const Decision elsewhere = limiter.take("elsewhere", sms);
  EXPECT_TRUE(elsewhere.allowed);
  EXPECT_FALSE(elsewhere.outage);
  network->fail();
  EXPECT_EQ(limiter.take("elsewhere", sms).outage, ErrorCode::storeUnavailable);
  network->recover();
  clock->advance(longestPause);
  EXPECT_FALSE(limiter.take("k", sms).outage);
  EXPECT_FALSE(limiter.take("elsewhere", sms).outage);
}

TEST_F(RateOutage, WhileOneTriesTheStoreTheOthersDoNotWait) {
  const RatePolicy sms = limit("5/h");
  network->fail();
  (void)limiter.take("k", sms);
  clock->advance(longestPause);
  network->hold();
  auto tries = background([&] { return limiter.take("k", sms); });
  ASSERT_TRUE(network->awaitHeld(1));
  EXPECT_EQ(limiter.take("k", sms).outage, ErrorCode::storeUnavailable);
  EXPECT_EQ(limiter.take("l", sms).outage, ErrorCode::storeUnavailable);
  network->recover();
  network->release();
  EXPECT_TRUE(tries.get().allowed);
}

TEST_F(RateOutage, ALostAnswerIsAnOutageThoughItMayHaveCharged) {
  const RatePolicy sms = limit("5/h");
  network->fail(true);
  EXPECT_EQ(limiter.take("k", sms).outage, ErrorCode::outcomeUnknown);
  network->recover();
  clock->advance(longestPause);
  EXPECT_EQ(limiter.peek("k", sms).remaining, 4);
}

TEST_F(RateOutage, LocallyThisProcessEnforcesItsShare) {
  const RatePolicy sms = limit("8/h", {.burst = 20, .outage = Outage::local, .processes = 4});
  network->fail();
  int allowed = 0;
  for (int count = 0; count < 50; ++count) {
    const Decision decision = limiter.take("k", sms);
    EXPECT_TRUE(decision.outage);
    if (decision.allowed) ++allowed;
  }
  EXPECT_EQ(allowed, 5) << "a quarter of 20";
  clock->advance(30min);
  EXPECT_TRUE(limiter.take("k", sms)) << "two an hour";
  EXPECT_FALSE(limiter.take("k", sms));
  const Decision aboveShare = limiter.take("k", sms, 6);
  EXPECT_FALSE(aboveShare.allowed) << "more than the share";
  EXPECT_GT(aboveShare.retryAfter, 0us);
}

TEST_F(RateOutage, WhatWasAllowedLocallyIsChargedWhenTheStoreIsBack) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    RatePolicyOptions made{.kind = kind, .outage = Outage::local, .processes = 2};
    const RatePolicy sms = limit("20/366d", made);
    const std::string mine = std::string(toString(kind)) + "1", others = std::string(toString(kind)) + "2";
    network->fail();
    for (int count = 0; count < 6; ++count) EXPECT_TRUE(limiter.take(mine, sms));
    for (int count = 0; count < 4; ++count) EXPECT_TRUE(limiter.take(others, sms));
    network->recover();
    clock->advance(longestPause);
    const Decision first = limiter.take(mine, sms);
    EXPECT_FALSE(first.outage);
    EXPECT_EQ(first.remaining, 20 - 6 - 1) << toString(kind) << ": charged before the first answer";
    EXPECT_EQ(other.peek(others, sms).remaining, 16) << toString(kind) << ": and soon after it, all keys";
    EXPECT_EQ(limiter.take(others, sms).remaining, 15) << toString(kind) << ": once";
  }
}

TEST_F(RateOutage, ADebtThatDoesNotFitEmptiesTheBucketAndNoMore) {
  const RatePolicy sms = limit("10/366d", {.burst = 10, .outage = Outage::local, .processes = 1});
  ASSERT_TRUE(other.take("k", sms, 7));
  network->fail();
  for (int count = 0; count < 10; ++count) EXPECT_TRUE(limiter.take("k", sms));
  network->recover();
  clock->advance(longestPause);
  EXPECT_FALSE(limiter.take("k", sms).allowed);
  EXPECT_EQ(other.peek("k", sms).remaining, 0);
}

TEST_F(RateOutage, AllOutagesTogetherAdmitOneBurstMoreThanTheLimit) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    const RatePolicy sms = limit("10/366d", {.kind = kind, .outage = Outage::local});
    const std::string key = toString(kind);
    ASSERT_TRUE(other.take(key, sms, 7));
    std::int64_t allowed = 7;
    for (int outage = 0; outage < 5; ++outage) {
      network->fail();
      while (limiter.take(key, sms)) ++allowed;
      network->recover();
      clock->advance(longestPause);
      EXPECT_FALSE(limiter.take("another", sms).outage);
    }
    EXPECT_EQ(other.peek(key, sms).remaining, 0) << key;
    EXPECT_EQ(allowed, 20) << key;
  }
}

TEST_F(RateOutage, ADebtIsKeptUntilItIsPaid) {
  const RatePolicy sms = limit("10/366d", {.burst = 10, .outage = Outage::local});
  network->fail();
  for (int count = 0; count < 4; ++count) EXPECT_TRUE(limiter.take("k", sms));
  clock->advance(longestPause);
  EXPECT_TRUE(limiter.take("k", sms).outage) << "still down";
  network->recover();
  clock->advance(2 * longestPause);
  EXPECT_EQ(limiter.take("k", sms).remaining, 10 - 5 - 1);
}

// One call is in time, two calls one after the other are not.
TEST_F(RateOutage, EndsAlsoWhenTheStoreIsTooSlowToBeChargedAndAskedInOneCall) {
  const RatePolicy sms = limit("10/366d", {.outage = Outage::local}),
                   mail("mail", {.rate = {10, 24h * 366}, .outage = Outage::local});
  ASSERT_TRUE(other.take("full", sms, 8));
  network->fail();
  for (int count = 0; count < 3; ++count) {
    EXPECT_TRUE(limiter.take({{"k", &sms}, {"k", &mail}}));
    EXPECT_TRUE(limiter.take("full", sms));
  }
  network->recover();
  network->onTake([&] { clock->advance(operationTimeout * 3 / 5); });
  const auto takesUntilItEnds = [&](const auto& take) {
    int takes = 1;
    for (; take().outage && takes < 10; ++takes) clock->advance(2s);
    return takes;
  };
  clock->advance(2s);
  EXPECT_LE(takesUntilItEnds([&] { return limiter.take("full", sms); }), 2) << "the debt does not fit";
  EXPECT_EQ(takesUntilItEnds([&] { return limiter.take({{"k", &sms}, {"k", &mail}}); }), 1);
  for (int count = 0; count < 5; ++count) EXPECT_FALSE(limiter.take("k", sms).outage);
  network->onTake([] {});
  network->fail();
  EXPECT_TRUE(limiter.take("quick", sms));
  network->recover();
  clock->advance(2s);
  EXPECT_EQ(limiter.take("quick", sms).remaining, 8) << "charged before it is asked, as nothing was left";
}

TEST_F(RateOutage, SeveralLimitsFollowTheStrictestOfTheirSettings) {
  const RatePolicy open("open", {.rate = {5, 1h}, .outage = Outage::open}),
      local("local", {.rate = {2, 1h}, .outage = Outage::local}), closed("closed", {.rate = {5, 1h}});
  network->fail();
  EXPECT_TRUE(limiter.take({{"k", &open}, {"k", &local}}));
  EXPECT_FALSE(limiter.take({{"k", &open}, {"k", &local}, {"k", &closed}}));
  EXPECT_EQ(limiter.take({{"k", &closed}, {"k", &local}}).policy, "closed");
  EXPECT_TRUE(limiter.take({{"k", &open}, {"k", &local}})) << "the refused ones charged nobody";
  const Decision refused = limiter.take({{"k", &open}, {"k", &local}});
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.policy, "local");
  EXPECT_TRUE(refused.outage);
}

TEST_F(RateOutage, IsNotWhatOneKeyOfTheWrongTypeMeansToOthers) {
  const RatePolicy sms = limit("1000/h");
  network->spoil(":sms:bad");
  for (int count = 0; count < 100; ++count) {
    const Decision bad = limiter.take("bad", sms);
    EXPECT_EQ(bad.outage, ErrorCode::config);
    EXPECT_EQ(bad.retryAfter, 1s);
    const Decision good = limiter.take("good" + std::to_string(count), sms);
    EXPECT_TRUE(good.allowed);
    EXPECT_FALSE(good.outage);
  }
  EXPECT_FALSE(limiter.take({{"bad", &sms}, {"good", &sms}})) << "charged together, they fail together";
  EXPECT_EQ(limiter.peek("good", sms).remaining, 1000);
}

TEST_F(RateOutage, EndsWithAnAnswerThoughThatIsAnError) {
  const RatePolicy sms = limit("5/h");
  network->fail();
  EXPECT_EQ(limiter.take("good", sms).outage, ErrorCode::storeUnavailable);
  network->recover();
  network->spoil(":sms:bad");
  clock->advance(longestPause);
  EXPECT_EQ(limiter.take("bad", sms).outage, ErrorCode::config);
  EXPECT_FALSE(limiter.take("good", sms).outage);
}

TEST_F(RateOutage, AKeyThatCannotBeChargedAfterwardsDoesNotKeepOthersFromIt) {
  constexpr int keys = 20;
  const RatePolicy sms = limit("5/366d", {.outage = Outage::local});
  network->fail();
  for (int key = 0; key < keys; ++key) EXPECT_TRUE(limiter.take(std::to_string(key), sms));
  network->recover();
  network->spoil(":sms:7");
  for (int count = 0; count < 3; ++count) {
    clock->advance(longestPause);
    EXPECT_FALSE(limiter.take("fresh", sms).outage);
  }
  for (int key = 0; key < keys; ++key) {
    if (key != 7) {
      EXPECT_EQ(other.peek(std::to_string(key), sms).remaining, 4) << key;
    }
  }
}

TEST_F(RateOutage, WhatIsUsedLocallyWhileTheStoreIsChargedIsNotForgotten) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    const RatePolicy sms = limit("10/366d", {.kind = kind, .outage = Outage::local});
    const std::string key = toString(kind);
    network->fail();
    for (int count = 0; count < 3; ++count) EXPECT_TRUE(limiter.take(key, sms));
    network->recover();
    clock->advance(longestPause);
    network->hold();
    auto charging = background([&] { return limiter.take(key, sms); });
    ASSERT_TRUE(network->awaitHeld(1));
    for (int count = 0; count < 4; ++count) EXPECT_TRUE(limiter.take(key, sms).outage);
    network->release();
    EXPECT_FALSE(charging.get().outage);
    EXPECT_EQ(limiter.take(key, sms).remaining, 10 - 3 - 1 - 4 - 1) << toString(kind);
  }
}

TEST_F(RateOutage, ChargingForOthersEndsWithHalfOfTheTimeAndFailsNobody) {
  constexpr int keys = 20;
  const RatePolicy sms = limit("5/366d", {.outage = Outage::local});
  network->fail();
  for (int key = 0; key < keys; ++key) EXPECT_TRUE(limiter.take(std::to_string(key), sms));
  network->recover();
  clock->advance(longestPause);
  network->onTake([&] { clock->advance(operationTimeout / 8); });
  const std::size_t before = network->leftToAnswer().size();
  EXPECT_FALSE(limiter.take("fresh", sms).outage);
  const auto left = network->leftToAnswer();
  EXPECT_EQ(left.size() - before, 1 + 4U) << "an eighth for the caller, and four begin in half of the rest";
  for (std::size_t call = before; call < left.size(); ++call) EXPECT_GE(left[call], operationTimeout / 2);

  network->onTake([&, call = 0]() mutable {
    if (++call == 2) network->fail();
  });
  EXPECT_FALSE(limiter.take("fresh", sms).outage);
  EXPECT_EQ(listener->heard().back(), "failed: store unavailable ");
  network->recover();
  EXPECT_FALSE(limiter.take("fresh", sms).outage) << "the store is not known to be down";
}

TEST_F(RateOutage, AChargeForOthersWhoseAnswerIsLateIsNotRepeated) {
  const RatePolicy sms = limit("10/366d", {.outage = Outage::local});
  network->fail();
  for (int count = 0; count < 4; ++count) EXPECT_TRUE(limiter.take("k", sms));
  network->recover();
  clock->advance(longestPause);
  network->onTake([&, call = 0]() mutable {
    if (++call == 2) network->fail(true);
  });
  EXPECT_FALSE(limiter.take("fresh", sms).outage);
  network->recover();
  EXPECT_FALSE(limiter.take("fresh", sms).outage);
  EXPECT_EQ(other.peek("k", sms).remaining, 6);
}

TEST_F(RateOutage, NewKeysBeyondABoundAreRefusedLocallyUntilOthersAreFullAgainAndThenCharged) {
  constexpr int mostKeys = 65'536;
  const RatePolicy sms = limit("2/h", {.outage = Outage::local});
  network->fail();
  for (int key = 0; key < mostKeys; ++key) ASSERT_TRUE(limiter.take(std::to_string(key), sms));
  const Decision refused = limiter.take("new", sms);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retryAfter, 1s);
  EXPECT_TRUE(limiter.take("new", sms, 0)) << "nothing is always allowed";
  EXPECT_TRUE(limiter.take("7", sms)) << "one that is known";
  EXPECT_FALSE(limiter.take({{"8", &sms}, {"new", &sms}})) << "all or none";
  EXPECT_TRUE(limiter.take("8", sms));
  clock->advance(30min);
  EXPECT_TRUE(limiter.take("new", sms));
  network->recover();
  clock->advance(longestPause);
  for (const char* const key : {"new", "7"}) {
    EXPECT_EQ(limiter.peek(key, sms).remaining, 2);
    EXPECT_TRUE(limiter.take(key, sms));
    EXPECT_EQ(limiter.peek(key, sms).remaining, 0) << "one unit of the outage still counts";
  }
}

TEST_F(RateOutage, LocalWindowsAreThoseOfTheCalendar) {
  using namespace std::chrono;
  clock->setWallClock(sys_days{2026y / November / 25} + 10h + 59min + 50s);
  RateLimiter late(network, options());
  const RatePolicy sms = limit("1/h", {.kind = RateKind::fixedWindow, .outage = Outage::local});
  network->fail();
  EXPECT_TRUE(late.take("k", sms));
  EXPECT_EQ(late.take("k", sms).retryAfter, 10s);
  clock->setWallClock(sys_days{2026y / November / 25});
  EXPECT_EQ(late.take("k", sms).retryAfter, 10s) << "whoever sets the clock changes no window";
  clock->advance(10s);
  EXPECT_TRUE(late.take("k", sms));
}

TEST_F(RateOutage, WaitingIsForTheStoreTooAndEnds) {
  const RatePolicy sms = limit("5/h");
  network->fail();
  auto waiting = background([&] { return limiter.takeOrWait("k", sms, {.waitFor = 1h}); });
  ASSERT_TRUE(clock->awaitWaiters(1));
  network->recover();
  clock->advance(longestPause);
  EXPECT_TRUE(waiting.get().allowed);
}

TEST_F(RateOutage, AQueueOfAnOutageHasNothingToGiveBack) {
  const RatePolicy queue = limit("1/s", {.kind = RateKind::leakyQueue, .burst = 5, .outage = Outage::local});
  network->fail();
  EXPECT_EQ(limiter.reserve("k", queue).at(), clock->now());
  RateSlot second = limiter.reserve("k", queue);
  EXPECT_EQ(second.at(), clock->now() + 1s);
  EXPECT_FALSE(second.giveBack());
}

TEST_F(RateOutage, OperationsWithoutAnOutageSettingThrow) {
  const RatePolicy sms = limit("5/h", {.outage = Outage::open});
  network->fail();
  EXPECT_THROW((void)limiter.peek("k", sms), StoreUnavailable);
  const int asked = network->calls();
  EXPECT_THROW((void)limiter.refund("k", sms), StoreUnavailable);
  EXPECT_THROW(limiter.reset("k", sms), StoreUnavailable);
  EXPECT_EQ(network->calls(), asked) << "known to be down";
}

}  // namespace
}  // namespace lockkeeper::test
