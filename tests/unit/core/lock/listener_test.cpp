#include <future>

#include "limit/rate_fixture.h"
#include "lockkeeper/listener_group.h"
#include "manager_fixture.h"

namespace lockkeeper::testing {
namespace {

/// Writes down each hook with all that it was told.
class FullListener final : public Listener {
 public:
  using Time = std::chrono::nanoseconds;

  void acquired(std::string_view key, Time waited, std::optional<Fence> fence) override {
    note("acquired", key, waited, fence.value_or(0));
  }
  void timedOut(std::string_view key, Time waited) override { note("timedOut", key, waited); }
  void gaveUp(std::string_view key, ErrorCode why, Time waited) override {
    note("gaveUp", key, toString(why), waited);
  }
  void renewed(std::string_view key) override { note("renewed", key); }
  void suspect(std::string_view key, Time remaining) override { note("suspect", key, remaining); }
  void lost(std::string_view key, LossReason reason) override { note("lost", key, toString(reason)); }
  void released(std::string_view key, Time held) override { note("released", key, held); }
  void decided(std::string_view key, const Decision& decision) override {
    note("decided", key, decision.policy, decision.allowed ? "allowed" : "refused",
         decision.outage ? toString(*decision.outage) : "by the store");
  }
  void refused(std::string_view key, std::string_view policy, std::chrono::microseconds retryAfter) override {
    note("refused", key, policy, retryAfter);
  }
  void storeFailed(std::string_view key, ErrorCode code, std::string_view message) override {
    note("storeFailed", key, toString(code), message);
  }
  void nodeAsked(std::string_view node, NodeOutcome outcome, Time latency) override {
    note("nodeAsked", node, toString(outcome), latency);
  }
  void noted(std::string_view store, std::string_view message) override { note("noted", store, message); }

  std::vector<std::string> heard;

 private:
  static std::string text(std::string_view value) { return std::string(value); }
  static std::string text(std::chrono::nanoseconds value) { return std::to_string(value.count()) + "ns"; }
  static std::string text(Fence value) { return std::to_string(value); }

  template <class... Values>
  void note(std::string line, const Values&... values) {
    ((line += " " + text(values)), ...);
    heard.push_back(line);
  }
};

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

TEST_F(ListenerTest, ACallThatFailedToTheEndIsToldWithItsReasonAndWait) {
  network->failAlways(Call::acquire, Fault::config);
  EXPECT_THROW((void)watched.lock("order"), ConfigError);
  ASSERT_EQ(all->heard.size(), 2U);
  EXPECT_TRUE(all->heard[0].starts_with("storeFailed order configuration"));
  EXPECT_EQ(all->heard[1], "gaveUp order configuration 0ns");
}

TEST_F(ListenerTest, TheNextOneOfThisProcessNeedNotWaitForTheListener) {
  struct Waiting final : Listener {
    void gaveUp(std::string_view, ErrorCode, std::chrono::nanoseconds) override {
      network->heal();
      next = std::async(std::launch::async, [this] { return manager->tryLock("order").has_value(); });
      got = next.wait_for(10s) == std::future_status::ready && next.get();
    }
    FaultyDriver* network = nullptr;
    LockManager* manager = nullptr;
    std::future<bool> next;
    bool got = false;
  };
  const auto asking = std::make_shared<Waiting>();
  ManagerOptions made = options(seed + 3);
  made.environment.listener = asking;
  LockManager failing(network, made);
  asking->network = network.get();
  asking->manager = &failing;
  network->fail(Call::acquire, {Fault::config});
  EXPECT_THROW((void)failing.lock("order"), ConfigError);
  EXPECT_TRUE(asking->got);
}

TEST_F(ListenerTest, ABusyLockAndAStoppedCallerAreToldApart) {
  const auto held = other.lock("order");
  EXPECT_FALSE(watched.tryLock("order"));
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(watched.tryLock("order", {.waitFor = 1h, .stop = stopped.get_token()}));
  EXPECT_EQ(all->heard, (std::vector<std::string>{"timedOut order 0ns", "gaveUp order cancelled 0ns"}));
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
  EXPECT_EQ(all->heard, (std::vector<std::string>{"decided :sms:+49 sms allowed by the store",
                                                  "decided :sms:+49 sms refused by the store",
                                                  "refused :sms:+49 sms 1000000000ns"}));
}

TEST_F(LimitListenerTest, LimitsThatAreAskedTogetherAreToldOneByOne) {
  const RatePolicy once = limit("1/s");
  const RatePolicy often("total", {.rate = Rate::parse("rate", "9/s")});
  EXPECT_TRUE(watched.take({{"+49", &once}, {"all", &often}}).allowed);
  EXPECT_EQ(all->heard, (std::vector<std::string>{"decided :sms:+49 sms allowed by the store",
                                                  "decided :total:all total allowed by the store"}));
}

TEST_F(LimitListenerTest, ADecisionWithoutTheStoreSaysSo) {
  network->fail();
  EXPECT_TRUE(watched.take("+49", limit("1/s", {.outage = Outage::open})).allowed);
  ASSERT_EQ(all->heard.size(), 2U);
  EXPECT_TRUE(all->heard[0].starts_with("storeFailed :sms:+49 store unavailable"));
  EXPECT_EQ(all->heard[1], "decided :sms:+49 sms allowed store unavailable");
}

void tellEverything(Listener& listener) {
  listener.acquired("order", 1ns, 2);
  listener.timedOut("order", 3ns);
  listener.gaveUp("order", ErrorCode::protocol, 4ns);
  listener.renewed("order");
  listener.suspect("order", 5ns);
  listener.lost("order", LossReason::maxHold);
  listener.released("order", 6ns);
  listener.decided("+49", {.allowed = true, .policy = "sms", .outage = {}});
  listener.refused("+49", "sms", 7us);
  listener.storeFailed("order", ErrorCode::deadlock, "a cycle");
  listener.nodeAsked("redis://a:1/0", NodeOutcome::agreed, 8ns);
  listener.noted("redis://a:1/0", "evicts keys");
}

TEST(ListenerGroup, EveryMemberHearsEverything) {
  FullListener alone;
  tellEverything(alone);
  const auto one = std::make_shared<FullListener>();
  const auto two = std::make_shared<FullListener>();
  ListenerGroup group({one, two});
  tellEverything(group);
  EXPECT_EQ(one->heard, alone.heard);
  EXPECT_EQ(two->heard, alone.heard);
}

TEST(ListenerGroup, AMemberThatThrowsKeepsNothingFromTheOthers) {
  struct Throwing final : Listener {
    void lost(std::string_view, LossReason) override { throw 1; }
  };
  const auto last = std::make_shared<FullListener>();
  ListenerGroup group({std::make_shared<Throwing>(), last});
  group.lost("order", LossReason::notOwner);
  EXPECT_EQ(last->heard, std::vector<std::string>{"lost order not the owner any more"});
}

TEST(ListenerGroup, RefusesAListenerThatIsNotThere) {
  EXPECT_THROW(ListenerGroup({std::make_shared<Listener>(), nullptr}), std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::testing
