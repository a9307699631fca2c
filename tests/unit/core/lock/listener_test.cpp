#include <future>

#include "limit/rate_fixture.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/trace/trace_scope.h"
#include "manager_fixture.h"

namespace lockkeeper::test {
namespace {

/// Writes down all that an event carries.
std::string written(const Event& event) {
  std::string line = toString(event.kind);
  const auto add = [&](std::string_view name, const std::string& value) {
    line.append(" ").append(name).append("=").append(value);
  };
  if (!event.key.empty()) add("key", std::string(event.key));
  if (!event.store.empty()) add("store", std::string(event.store));
  if (event.duration() != 0ns) add("took", formatDuration(ceil<std::chrono::milliseconds>(event.duration())));
  if (event.attempts > 0) add("attempts", std::to_string(event.attempts));
  if (event.error) add("error", toString(*event.error));
  if (!event.text.empty()) add("text", std::string(event.text));
  if (event.fence) add("fence", std::to_string(*event.fence));
  if (event.remaining > 0ns) add("left", formatDuration(floor<std::chrono::milliseconds>(event.remaining)));
  if (event.kind == EventKind::lost) add("loss", toString(event.loss));
  if (event.kind == EventKind::nodeAsked) add("node", toString(event.node));
  if (event.kind == EventKind::taskEnded) add("task", toString(event.task));
  if (event.decision != nullptr) {
    add("policy", event.decision->policy);
    add("says", event.decision->allowed ? "allowed" : "refused");
  }
  return line;
}

class FullListener final : public Listener {
 public:
  void on(const Event& event) override { heard.push_back(written(event)); }

  std::vector<std::string> heard;
};

using Lines = std::vector<std::string>;

class ListenerTest : public ManagerFixture {
 protected:
  ManagerOptions listenedTo() {
    ManagerOptions made = options(seed + 2);
    made.environment.listener = all;
    return made;
  }

  std::shared_ptr<FullListener> all = std::make_shared<FullListener>();
  LockManager watched{network, listenedTo()};
};

TEST_F(ListenerTest, ACallThatFailedToTheEndIsToldWithItsReasonAndAttempts) {
  network->failAlways(Call::acquire, Fault::config);
  EXPECT_THROW((void)watched.lock("order"), ConfigError);
  EXPECT_EQ(
      all->heard,
      (Lines{"attempt failed key=order store=network error=configuration text=misconfigured, says the test",
             "gave up key=order store=network attempts=1 error=configuration "
             "text=misconfigured, says the test"}));
}

TEST_F(ListenerTest, TheCallOfALockIsASpanFromItsBeginningToItsEnd) {
  const Instant start = clock->now();
  std::vector<Event> events;
  std::vector<std::string> stores;
  LockManager traced(network, heardBy(seed + 4, [&](const Event& event) {
                       events.push_back(event);
                       stores.emplace_back(event.store);
                     }));
  network->fail(Call::acquire, {Fault::unavailable, Fault::unavailable});
  auto waiting = std::async(std::launch::async, [&] { return traced.lock("order"); });
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 1));
  while (waiting.wait_for(1ms) != std::future_status::ready) clock->advance(1ms);
  const Lock held = waiting.get();
  ASSERT_EQ(events.size(), 2U) << "the first of two failed attempts, and the lock";
  EXPECT_EQ(events[0].kind, EventKind::attemptFailed);
  EXPECT_EQ(events[1].kind, EventKind::acquired);
  EXPECT_EQ(events[1].began, start);
  EXPECT_GE(events[1].ended, events[0].ended);
  EXPECT_EQ(events[1].attempts, 3);
  EXPECT_EQ(events[1].fence, held.fence());
  EXPECT_EQ(stores, (Lines{"network", "network"}));
}

TEST_F(ListenerTest, AnOutageIsToldOnceASecondWithWhatWasLeftOut) {
  std::vector<Event> failures;
  LockManager traced(network, heardBy(seed + 4, [&](const Event& event) {
                       if (event.kind == EventKind::attemptFailed) failures.push_back(event);
                     }));
  network->failAlways(Call::acquire, Fault::unavailable);
  for (int attempt = 0; attempt < 21; ++attempt) {
    EXPECT_THROW((void)traced.tryLock("order"), StoreUnavailable);
    clock->advance(100ms);
  }
  ASSERT_EQ(failures.size(), 3U) << "at 0, 1 and 2 s";
  EXPECT_EQ(failures[0].leftOut, 0U) << "the first one is told at once";
  EXPECT_EQ(failures[1].leftOut, 9U);
  EXPECT_EQ(failures[2].leftOut, 9U);
}

TEST_F(ListenerTest, AllThatHappensToALockNamesTheTraceInWhichItWasTaken) {
  Lines traces;
  std::promise<void> lost;
  LockManager traced(network, heardBy(seed + 4, [&](const Event& event) {
                       traces.push_back(std::string(toString(event.kind)) + " " + std::string(event.trace));
                       if (event.kind == EventKind::lost) lost.set_value();
                     }));
  std::optional<Lock> first, second;
  {
    const TraceScope outer("outer");
    first = traced.lock("first");
    {
      const TraceScope inner("inner");
      second = traced.lock("second", {.ttl = 10s, .renew = Renew::manual});
    }
    EXPECT_FALSE(traced.tryLock("first"));
  }
  first->release();
  clock->advance(10s);
  ASSERT_EQ(lost.get_future().wait_for(20s), std::future_status::ready) << "told by a thread of the manager";
  (void)traced.lock("third").release();
  EXPECT_EQ(traces, (Lines{"acquired outer", "acquired inner", "timed out outer", "released outer",
                           "lost inner", "acquired ", "released "}));
}

TEST_F(ListenerTest, ARenewalThatFailsSaysWhy) {
  auto held = watched.lock("order", {.ttl = 30s, .renew = Renew::manual});
  all->heard.clear();
  network->fail(Call::renew, {Fault::unavailable, Fault::replyLost});
  try {
    held.renew();
    FAIL() << "it was renewed";
  } catch (const StoreUnavailable& error) {
    EXPECT_NE(std::string(error.what()).find("renewal failed, says the test"), std::string::npos);
  }
  EXPECT_THROW(held.renew(), OutcomeUnknown);
  held.renew();
  EXPECT_EQ(all->heard, (Lines{"renewal failed key=order store=network attempts=1 error=store unavailable "
                               "text=renewal failed, says the test left=26698ms",
                               "renewal failed key=order store=network attempts=1 error=outcome unknown "
                               "text=renewal failed, says the test left=26698ms",
                               "renewed key=order store=network attempts=1"}));
}

TEST_F(ListenerTest, AReleaseThatTheStoreHasNotConfirmedSaysWhy) {
  auto held = watched.lock("order");
  all->heard.clear();
  network->fail(Call::release, {Fault::replyLost});
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_EQ(all->heard.back(), "released key=order store=network attempts=2 fence=1");
  auto second = watched.lock("order", {.ttl = 30s});
  network->fail(Call::renew, {Fault::unavailable});
  EXPECT_EQ(second.releaseHeldFor(1min), ReleaseResult::unavailable);
  EXPECT_EQ(all->heard.back(),
            "released key=order store=network attempts=1 error=store unavailable text=renewal failed, says "
            "the test fence=2");
}

TEST_F(ListenerTest, TheNextOneOfThisProcessNeedNotWaitForTheListener) {
  LockManager* failing = nullptr;
  std::future<bool> next;
  bool got = false;
  LockManager made(network, heardBy(seed + 3, [&](const Event& event) {
                     if (event.kind != EventKind::gaveUp) return;
                     network->heal();
                     next = std::async(std::launch::async,
                                       [&] { return failing->tryLock("order").has_value(); });
                     got = next.wait_for(10s) == std::future_status::ready && next.get();
                   }));
  failing = &made;
  network->fail(Call::acquire, {Fault::config});
  EXPECT_THROW((void)made.lock("order"), ConfigError);
  EXPECT_TRUE(got);
}

TEST_F(ListenerTest, ALossIsNotToldBeforeTheLockItself) {
  std::mutex mutex;
  std::vector<EventKind> heard;
  std::promise<void> lost;
  LockManager made(store, heardBy(seed + 3, [&](const Event& event) {
                     if (event.kind == EventKind::acquired) {
                       store->breakLock("order", {});  // which the manager learns of at once
                       std::this_thread::sleep_for(50ms);
                     }
                     {
                       const std::lock_guard guard(mutex);
                       heard.push_back(event.kind);
                     }
                     if (event.kind == EventKind::lost) lost.set_value();
                   }));
  const Lock held = made.lock("order");
  lost.get_future().wait();
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(heard, (std::vector{EventKind::acquired, EventKind::lost}));
}

TEST_F(ListenerTest, ABusyLockAndAStoppedCallerAreToldApart) {
  const auto held = other.lock("order");
  EXPECT_FALSE(watched.tryLock("order"));
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(watched.tryLock("order", {.waitFor = 1h, .stop = stopped.get_token()}));
  EXPECT_EQ(all->heard, (Lines{"timed out key=order store=network attempts=1",
                               "gave up key=order store=network attempts=1 error=cancelled"}));
}

TEST_F(ListenerTest, NobodyNeedListen) {
  ManagerOptions made = options(seed + 5);
  made.environment.listener = nullptr;
  LockManager unheard(network, made);
  EXPECT_EQ(unheard.lock("order").release(), ReleaseResult::released);
}

class LimitListenerTest : public RateFixture {
 protected:
  RateLimiterOptions listenedTo() {
    RateLimiterOptions made = options();
    made.environment.listener = all;
    return made;
  }

  std::shared_ptr<FullListener> all = std::make_shared<FullListener>();
  RateLimiter watched{network, listenedTo()};
};

TEST_F(LimitListenerTest, EachDecisionOfALimitIsTold) {
  const RatePolicy once = limit("1/s");
  EXPECT_TRUE(watched.take("+49", once).allowed);
  EXPECT_FALSE(watched.take("+49", once).allowed);
  EXPECT_FALSE(watched.peek("+49", once).allowed);
  EXPECT_EQ(all->heard, (Lines{"decided key=:sms:+49 policy=sms says=allowed",
                               "decided key=:sms:+49 policy=sms says=refused"}));
}

TEST_F(LimitListenerTest, LimitsThatAreAskedTogetherAreToldOneByOne) {
  const RatePolicy once = limit("1/s");
  const RatePolicy often("total", {.rate = Rate::parse("rate", "9/s")});
  EXPECT_TRUE(watched.take({{"+49", &once}, {"all", &often}}).allowed);
  EXPECT_EQ(all->heard, (Lines{"decided key=:sms:+49 policy=sms says=allowed",
                               "decided key=:total:all policy=total says=allowed"}));
}

TEST_F(LimitListenerTest, ADecisionWithoutTheStoreSaysSo) {
  network->fail();
  EXPECT_TRUE(watched.take("+49", limit("1/s", {.outage = Outage::open})).allowed);
  ASSERT_EQ(all->heard.size(), 2U);
  EXPECT_TRUE(all->heard[0].starts_with("attempt failed key=:sms:+49 error=store unavailable"));
  EXPECT_EQ(
      all->heard[1],
      "decided key=:sms:+49 error=store unavailable text=take: the store is down policy=sms says=allowed");
}

TEST(ListenerGroup, EveryMemberHearsEverythingThoughOneThrows) {
  struct Throwing final : Listener {
    void on(const Event&) override { throw 1; }
  };
  const auto one = std::make_shared<FullListener>();
  const auto two = std::make_shared<FullListener>();
  ListenerGroup group({one, std::make_shared<Throwing>(), two});
  const Event lost{.kind = EventKind::lost, .key = "order", .fence = 2, .loss = LossReason::notOwner};
  EXPECT_NO_THROW(group.on(lost));
  EXPECT_EQ(one->heard, Lines{"lost key=order fence=2 loss=not the owner any more"});
  EXPECT_EQ(two->heard, one->heard);
}

TEST(ListenerGroup, RefusesAListenerThatIsNotThere) {
  EXPECT_THROW(ListenerGroup({std::make_shared<FullListener>(), nullptr}), std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::test
