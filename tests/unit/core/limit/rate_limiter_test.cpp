#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <optional>

#include "rate_fixture.h"
#include "refusal.h"

namespace lockkeeper::test {
namespace {

using RateLimiterTest = RateFixture;

TEST_F(RateLimiterTest, ADecisionTellsAllThatACallerAsks) {
  const RatePolicy sms = limit("2/s", {.burst = 10});
  const Decision first = limiter.take("+49", sms, 9);
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.remaining, 1);
  EXPECT_EQ(first.retryAfter, 0us);
  EXPECT_EQ(first.resetAfter, 4500ms);
  EXPECT_EQ(first.policy, "sms");
  EXPECT_FALSE(first.outage);
  const Decision refused = limiter.take("+49", sms, 2);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.remaining, 1);
  EXPECT_EQ(refused.retryAfter, 500ms);
  EXPECT_EQ(refused.resetAfter, 4500ms);
  EXPECT_FALSE(refused.outage) << "a refusal is no outage";
  EXPECT_EQ(listener->heard(), std::vector<std::string>{"refused :sms:+49 by sms for 500000"});
}

TEST_F(RateLimiterTest, ACostBeyondTheBurstIsAnErrorAndNotAWait) {
  const RatePolicy sms = limit("2/s", {.burst = 10});
  EXPECT_EQ(refusalOf([&] { (void)limiter.take("k", sms, 11); }),
            "the cost 11 can never be allowed by the limit 'sms': 0 to 10 are possible");
  EXPECT_NE(refusalOf([&] { (void)limiter.take("k", sms, -1); }).find("-1"), std::string::npos);
  EXPECT_NE(refusalOf([&] { (void)limiter.takeOrWait("k", sms, {.waitFor = 1h}, 11); }), "accepted");
  EXPECT_NE(refusalOf([&] { (void)limiter.take("", sms); }).find("empty"), std::string::npos);
  EXPECT_NE(refusalOf([&] { (void)limiter.reserve("k", sms); }).find("leaky-queue"), std::string::npos);
  const RatePolicy queue = limit("2/s", {.kind = RateKind::leakyQueue});
  EXPECT_NE(refusalOf([&] { (void)limiter.refund("k", queue); }).find("slot"), std::string::npos);
  EXPECT_EQ(network->calls(), 0);
}

TEST_F(RateLimiterTest, BadOptionsMakeNoLimiter) {
  EXPECT_NE(refusalOf([] { RateLimiter made(nullptr); }).find("driver"), std::string::npos);
  RateLimiterOptions bad = options();
  bad.operationTimeout = 0ms;
  EXPECT_EQ(refusalOf([&] { RateLimiter made(network, bad); }),
            "operationTimeout is 0s: it must be 1ms to 1h");
  bad = options();
  bad.keyNamespace = "a:b";
  EXPECT_NE(refusalOf([&] { RateLimiter made(network, bad); }).find("a:b"), std::string::npos);
}

TEST_F(RateLimiterTest, SeveralLimitsNameTheOneThatRefuses) {
  const RatePolicy user("user", {.rate = {5, 1h}}), address("address", {.rate = {2, 1h}}),
      everybody("everybody", {.rate = {100, 1h}});
  const auto ask = [&] {
    return limiter.take({{"7", &user}, {"10.0.0.1", &address}, {"all", &everybody, 10}});
  };
  Decision decision = ask();
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.policy, "address") << "the one with the least remaining";
  EXPECT_EQ(decision.remaining, 1);
  EXPECT_TRUE(ask());
  decision = ask();
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.policy, "address");
  EXPECT_EQ(decision.retryAfter, 30min);
  EXPECT_EQ(limiter.peek("7", user).remaining, 3) << "a refused call charges nobody";
  EXPECT_EQ(limiter.peek("all", everybody).remaining, 80);

  const int before = network->calls();
  std::array takes{RateTake{"7", &user}, RateTake{"10.0.0.1", &address}};
  EXPECT_FALSE(limiter.take(takes).allowed);
  EXPECT_EQ(network->calls(), before) << "known to be refused";
  EXPECT_TRUE(takes[0].decision.allowed);
  EXPECT_FALSE(takes[1].decision.allowed);
  EXPECT_EQ(takes[1].decision.retryAfter, 30min);
}

TEST_F(RateLimiterTest, OfSeveralThatRefuseTheOneThatLastsLongestIsNamed) {
  const RatePolicy shortOne("short", {.rate = {1, 1min}});
  const RatePolicy longOne("long", {.rate = {1, 1h}});
  for (const bool longFirst : {true, false}) {
    const std::string key = longFirst ? "a" : "b";
    RateTake takes[] = {{.key = key, .policy = longFirst ? &longOne : &shortOne},
                        {.key = key, .policy = longFirst ? &shortOne : &longOne}};
    ASSERT_TRUE(limiter.take(takes));
    const Decision refused = limiter.take(takes);
    EXPECT_FALSE(refused.allowed);
    EXPECT_EQ(refused.policy, "long");
    EXPECT_EQ(refused.retryAfter, 1h);
  }
}

TEST_F(RateLimiterTest, SeveralLimitsMustBeDifferentAndNotTooMany) {
  const RatePolicy sms = limit("5/h"), mail("mail", sms.options());
  EXPECT_NE(refusalOf([&] {
              (void)limiter.take({{"k", &sms}, {"k", &sms}});
            }).find("twice"),
            std::string::npos);
  EXPECT_TRUE(limiter.take({{"k", &sms}, {"k", &mail}}));
  std::vector<RateTake> many(17, RateTake{"k", &sms});
  EXPECT_NE(refusalOf([&] { (void)limiter.take(many); }).find("17"), std::string::npos);
  EXPECT_THROW((void)limiter.take(std::span<RateTake>{}), std::invalid_argument);
  EXPECT_EQ(network->calls(), 1);
}

TEST_F(RateLimiterTest, WaitsExactlyUntilTheUnitIsThere) {
  const RatePolicy sms = limit("2/s", {.burst = 2});
  ASSERT_TRUE(limiter.take("k", sms, 2));
  auto waiting = background([&] { return limiter.takeOrWait("k", sms, {.waitFor = 10s}); });
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 500ms));
  clock->advance(500ms);
  EXPECT_TRUE(waiting.get().allowed);
}

TEST_F(RateLimiterTest, WaitsForWhatComesInTheVeryLastMoment) {
  const RatePolicy sms = limit("2/s", {.burst = 2});
  ASSERT_TRUE(limiter.take("k", sms, 2));
  auto waiting = background([&] { return limiter.takeOrWait("k", sms, {.waitFor = 500ms}); });
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 500ms));
  clock->advance(500ms);
  EXPECT_TRUE(waiting.get().allowed);
}

TEST_F(RateLimiterTest, DoesNotWaitForWhatCannotCome) {
  const RatePolicy sms = limit("2/s", {.burst = 2});
  ASSERT_TRUE(limiter.take("k", sms, 2));
  const Decision refused = limiter.takeOrWait("k", sms, {.waitFor = 499ms});
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retryAfter, 500ms);
  EXPECT_THROW((void)limiter.takeOrWait("k", sms, {.waitFor = -1ms}), std::invalid_argument);
  EXPECT_THROW((void)limiter.takeOrWait("k", sms, {.waitFor = 25h}), std::invalid_argument);
}

/// A store whose answers name the longest times that there are. It grants what is asked for the hundredth
/// time, so that nobody asks for ever.
class EndlessRefusal final : public RateDriver {
 public:
  void take(std::span<RateCharge> charges, Instant) override {
    ++calls;
    const auto longest = std::chrono::microseconds::max();
    for (RateCharge& each : charges) {
      each.outcome = {.retryAfter = longest, .resetAfter = longest};
      if (calls >= 100) each.outcome.granted = each.times;
    }
  }
  void peek(std::span<RateCharge> charges, Instant deadline) override { take(charges, deadline); }
  bool refund(const RateRefund&, Instant) override { return false; }
  void reset(std::string_view, RateKind, Instant) override {}

  int calls = 0;
};

TEST_F(RateLimiterTest, ATimeBeyondTheScaleIsNotWaitedForAndNotAskedForAgain) {
  const auto endless = std::make_shared<EndlessRefusal>();
  RateLimiter refused(endless, options());
  const RatePolicy sms = limit("2/s");
  EXPECT_FALSE(refused.takeOrWait("k", sms, {.waitFor = 24h}).allowed);
  EXPECT_FALSE(refused.takeOrWait("k", sms, {.waitFor = 24h}).allowed);
  EXPECT_FALSE(refused.take("k", sms).allowed);
  EXPECT_EQ(endless->calls, 1) << "the refusal is remembered";
  const Decision known = refused.take("k", sms);
  EXPECT_GT(known.retryAfter, 24h * 365 * 200);
  EXPECT_GT(known.resetAfter, 24h * 365 * 200);
  EXPECT_FALSE(refused.take({{"a", &sms}, {"b", &sms}}).allowed);
  EXPECT_FALSE(refused.take({{"a", &sms}, {"b", &sms}}).allowed);
  EXPECT_EQ(endless->calls, 2);
}

TEST_F(RateLimiterTest, ASlotBeyondTheScaleIsNotThereAtOnce) {
  /// A store that gives a queue's slot at the end of all times.
  class LastSlot final : public RateDriver {
   public:
    void take(std::span<RateCharge> charges, Instant) override {
      charges.front().outcome = {.granted = 1, .slot = {std::numeric_limits<std::int64_t>::max(), 0}};
    }
    void peek(std::span<RateCharge>, Instant) override {}
    bool refund(const RateRefund&, Instant) override { return false; }
    void reset(std::string_view, RateKind, Instant) override {}
  };
  RateLimiter queueing(std::make_shared<LastSlot>(), options());
  RateSlot slot = queueing.reserve("k", limit("2/s", {.kind = RateKind::leakyQueue}));
  ASSERT_TRUE(slot);
  std::stop_source stop;
  auto waiting = background([&] { return slot.wait(stop.get_token()); });
  EXPECT_TRUE(clock->awaitWakeUpAt(Instant::max()));
  stop.request_stop();
  EXPECT_FALSE(waiting.get());
}

TEST_F(RateLimiterTest, AWaitEndsWhenItIsStopped) {
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::leakyQueue}) {
    const RatePolicy sms = limit("1/h", {.kind = kind, .burst = 2});
    const std::string key = toString(kind);
    while (limiter.take(key, sms)) {
    }
    std::stop_source stop;
    auto waiting =
        background([&] { return limiter.takeOrWait(key, sms, {.waitFor = 2h, .stop = stop.get_token()}); });
    ASSERT_TRUE(clock->awaitWaiters(1));
    stop.request_stop();
    EXPECT_FALSE(waiting.get().allowed);
    const std::int64_t left = kind == RateKind::leakyQueue ? 1 : 0;
    EXPECT_EQ(limiter.peek(key, sms).remaining, left) << "a slot that was not used is given back";
  }
}

TEST_F(RateLimiterTest, AWaitForASlotThatIsStoppedIsARefusalAndToldAsOne) {
  const RatePolicy queue = limit("1/h", {.kind = RateKind::leakyQueue, .burst = 2});
  ASSERT_TRUE(limiter.take("k", queue));
  const auto admissions = listener->waits();
  std::stop_source stop;
  auto waiting =
      background([&] { return limiter.takeOrWait("k", queue, {.waitFor = 2h, .stop = stop.get_token()}); });
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 1h));
  clock->advance(20min);
  stop.request_stop();
  const Decision decision = waiting.get();
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.retryAfter, 40min);
  EXPECT_EQ(listener->waits(), admissions);
  EXPECT_EQ(listener->heard(), std::vector<std::string>{"refused :sms:k by sms for 2400000000"});
}

TEST_F(RateLimiterTest, ALimiterOfTheParentIsRefusedInTheChild) {
  const RatePolicy sms = limit("5/h");
  ASSERT_TRUE(limiter.take("k", sms));
  const pid_t child = ::fork();
  if (child == 0) {
    bool refused = false;
    try {
      (void)limiter.take("k", sms);
    } catch (const ForkedError&) {
      refused = true;
    }
    { const RateLimiter dies = std::move(limiter); }
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// Destroys the limiter that it hears of.
class EndingListener final : public Listener {
 public:
  void on(const Event& event) override {
    if (event.kind == EventKind::decided) limiter.reset();
  }
  std::optional<RateLimiter> limiter;
};

TEST_F(RateLimiterTest, ACallGoesOnThoughItsListenerDestroysTheLimiter) {
  const RatePolicy bucket = limit("1/h"), queue = limit("1/h", {.kind = RateKind::leakyQueue});
  const auto ending = std::make_shared<EndingListener>();
  const auto made = [&]() -> RateLimiter& {
    RateLimiterOptions with = options();
    with.environment.listener = ending;
    return ending->limiter.emplace(network, with);
  };
  EXPECT_TRUE(made().take("a", bucket));
  EXPECT_FALSE(ending->limiter);
  EXPECT_TRUE(made().take({{"b", &bucket}, {"c", &bucket}}));
  EXPECT_FALSE(ending->limiter);
  EXPECT_TRUE(made().takeOrWait("d", bucket, {}));
  EXPECT_FALSE(made().takeOrWait("d", bucket, {.waitFor = 1s})) << "refused for longer than that";
  EXPECT_TRUE(made().takeOrWait("e", queue, {.waitFor = 1s}));
  RateSlot slot = made().reserve("f", queue);
  EXPECT_FALSE(ending->limiter);
  EXPECT_TRUE(slot.wait());
  EXPECT_TRUE(slot.giveBack());
}

TEST_F(RateLimiterTest, AskingUnderNoPolicyIsRefusedBeforeAnythingIsAsked) {
  const RatePolicy sms = limit("1/h");
  std::string why;
  try {
    (void)limiter.take({{"k", &sms}, {.key = "x"}});
  } catch (const std::invalid_argument& error) {
    why = error.what();
  }
  EXPECT_EQ(why, "the limit of the key 'x' is missing: RateTake::policy must not be null");
  EXPECT_EQ(network->calls(), 0);
}

TEST_F(RateLimiterTest, TheEndOfALimiterDoesNotWaitForTheStore) {
  const RatePolicy sms = limit("5/h");
  std::optional<RateLimiter> ends(std::in_place, network, options());
  for (int key = 0; key < 100; ++key) (void)ends->take(std::to_string(key), sms);
  network->hold();  // from now on no call returns
  const int asked = network->calls();
  auto ended = background([&] { ends.reset(); });
  EXPECT_EQ(ended.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(network->calls(), asked);
  network->release();
}

TEST_F(RateLimiterTest, AQueueLetsItsCallersGoOneByOne) {
  const RatePolicy queue = limit("2/s", {.kind = RateKind::leakyQueue, .burst = 3});
  const Instant start = clock->now();
  RateSlot first = limiter.reserve("k", queue), second = limiter.reserve("k", queue),
           third = other.reserve("k", queue);
  EXPECT_EQ(first.at(), start);
  EXPECT_EQ(second.at(), start + 500ms);
  EXPECT_EQ(third.at(), start + 1s);
  RateSlot full = limiter.reserve("k", queue);
  EXPECT_FALSE(full);
  EXPECT_EQ(full.decision().retryAfter, 500ms);
  EXPECT_FALSE(full.wait());
  EXPECT_FALSE(full.giveBack());
  EXPECT_TRUE(first.wait());
  auto waiting = background([&] { return second.wait(); });
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 500ms));
  clock->advance(500ms);
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(third.giveBack());
  EXPECT_FALSE(third.giveBack());
  EXPECT_EQ(limiter.reserve("k", queue).at(), start + 1s);
}

TEST_F(RateLimiterTest, WhoWaitsForAQueueGetsTheNextSlotOrARefusalAtOnce) {
  const RatePolicy queue = limit("2/s", {.kind = RateKind::leakyQueue, .burst = 10});
  EXPECT_TRUE(limiter.take("k", queue)) << "an empty queue needs no waiting";
  EXPECT_FALSE(limiter.take("k", queue));
  EXPECT_FALSE(limiter.takeOrWait("k", queue, {.waitFor = 499ms}));
  auto waiting = background([&] { return limiter.takeOrWait("k", queue, {.waitFor = 500ms}); });
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 500ms));
  EXPECT_EQ(limiter.reserve("k", queue).at(), clock->now() + 1s);
  clock->advance(500ms);
  EXPECT_TRUE(waiting.get().allowed);
}

TEST_F(RateLimiterTest, WhoWaitsIsToldWithTheTimeFromTheCallToWhenItMayGo) {
  const RatePolicy sms = limit("2/s", {.burst = 1});
  const RatePolicy queue = limit("2/s", {.kind = RateKind::leakyQueue, .burst = 10});
  EXPECT_TRUE(limiter.take("a", sms));
  auto waiting = background([&] { return limiter.takeOrWait("a", sms, {.waitFor = 10s}); });
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 500ms));
  clock->advance(500ms);
  EXPECT_TRUE(waiting.get());
  EXPECT_FALSE(limiter.takeOrWait("a", sms, {.waitFor = 0ms}));
  EXPECT_TRUE(limiter.reserve("b", queue));
  EXPECT_TRUE(limiter.reserve("b", queue));
  EXPECT_FALSE(limiter.takeOrWait("b", queue, {.waitFor = 10ms}));
  EXPECT_EQ(listener->waits(), (std::vector<std::chrono::nanoseconds>{500ms, 0ms, 500ms}));
}

TEST_F(RateLimiterTest, ASlotHasOneOwner) {
  static_assert(!std::is_copy_constructible_v<RateSlot> && !std::is_copy_assignable_v<RateSlot>);
  RateSlot none;
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.wait());
  EXPECT_FALSE(none.giveBack());
  const RatePolicy queue = limit("1/s", {.kind = RateKind::leakyQueue, .burst = 5});
  RateSlot first = limiter.reserve("k", queue);
  none = std::move(first);
  EXPECT_TRUE(none.wait());
  EXPECT_FALSE(first);  // NOLINT: moved from, and tested for that
  EXPECT_FALSE(first.wait());
  EXPECT_FALSE(first.giveBack());
  EXPECT_TRUE(none.giveBack());
}

TEST_F(RateLimiterTest, ADecisionOutlivesItsPolicy) {
  Decision decision;
  {
    const RatePolicy gone(std::string(40, 'p'), {.rate = Rate::parse("rate", "1/s")});
    decision = limiter.take("k", gone);
  }
  EXPECT_EQ(decision.policy, std::string(40, 'p'));
}

TEST_F(RateLimiterTest, StopEndsAllWaitsAndThoseThatCome) {
  const RatePolicy once = limit("1/h");
  const RatePolicy queue("queue",
                         {.kind = RateKind::leakyQueue, .rate = Rate::parse("rate", "1/h"), .burst = 5});
  EXPECT_TRUE(limiter.take("k", once));
  EXPECT_TRUE(limiter.reserve("k", queue));
  RateSlot slot = limiter.reserve("k", queue);
  auto taking = background([&] { return limiter.takeOrWait("k", once, {.waitFor = 2h}); });
  auto queueing = background([&] { return limiter.takeOrWait("k", queue, {.waitFor = 5h}); });
  auto waiting = background([&] { return slot.wait(); });
  ASSERT_TRUE(clock->awaitWaiters(3));
  limiter.stop();
  EXPECT_FALSE(taking.get());
  EXPECT_FALSE(queueing.get());
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(limiter.takeOrWait("k", once, {.waitFor = 2h}));
  EXPECT_FALSE(slot.wait());
  EXPECT_TRUE(limiter.take("other", once)) << "what does not wait goes on";
}

TEST_F(RateLimiterTest, ALimiterThatWasMovedFromSaysSo) {
  RateLimiter moved = std::move(limiter);
  EXPECT_THROW((void)limiter.take("k", limit("1/s")), std::logic_error);  // NOLINT: moved from
}

}  // namespace
}  // namespace lockkeeper::test
