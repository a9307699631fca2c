#include "lockkeeper/leader_election.h"

#include <algorithm>
#include <atomic>

#include "lock/manager_fixture.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
namespace {

/// What all candidates say, in order, with the clock's time.
class Protocol {
 public:
  explicit Protocol(std::shared_ptr<FakeClock> clock) : clock_(std::move(clock)) {}

  void say(const std::string& what) {
    const std::lock_guard guard(mutex_);
    said_.push_back({what, clock_->now()});
    changed_.notify_all();
  }
  /// When `what` was said for the `nth` time; empty when it was not within 20 s of real time.
  std::optional<Instant> await(const std::string& what, int nth = 1) {
    std::unique_lock guard(mutex_);
    changed_.wait_for(guard, 20s, [&] { return find(what, nth).has_value(); });
    return find(what, nth);
  }
  /// Whether it has been by now.
  bool isSaid(const std::string& what, int nth) const {
    const std::lock_guard guard(mutex_);
    return find(what, nth).has_value();
  }
  std::vector<std::string> said() const {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> all;
    for (const Said& each : said_) all.push_back(each.what);
    return all;
  }

 private:
  struct Said {
    std::string what;
    Instant when;
  };
  std::optional<Instant> find(const std::string& what, int nth) const {
    for (const Said& each : said_) {
      if (each.what == what && --nth == 0) return each.when;
    }
    return std::nullopt;
  }

  const std::shared_ptr<FakeClock> clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Said> said_;
};

class LeaderElectionTest : public ManagerFixture {
 protected:
  static constexpr auto ttl = 10s;
  static constexpr auto margin = 1s;
  static constexpr auto validFor = ttl - 102ms - margin;

  ElectionOptions electionOptions() const {
    ElectionOptions made;
    made.name = "chief";
    made.ttl = ttl;
    return made;
  }
  ElectionHooks hooks(const std::string& who) {
    return {.elected = [this, who](const Term&) { protocol.say(who + " elected"); },
            .deposed =
                [this, who](const Term& term) {
                  EXPECT_TRUE(term.ended.stop_requested());
                  protocol.say(who + " deposed");
                }};
  }
  ManagerOptions toldOf(const std::string& who, std::uint64_t randomSeed) {
    return heardBy(randomSeed, [this, who](const Event& event) {
      EXPECT_EQ(event.key, "chief");
      if (event.kind == EventKind::termBegan || event.kind == EventKind::termEnded) {
        return terms.say(who + ": " + toString(event.kind));
      }
      const bool usual = event.kind == EventKind::acquired || event.kind == EventKind::timedOut ||
                         event.kind == EventKind::released || event.kind == EventKind::renewed ||
                         event.kind == EventKind::renewalFailed || event.kind == EventKind::attemptFailed ||
                         event.error == ErrorCode::cancelled;
      if (!usual) protocol.say(who + ": " + toString(event.kind));
    });
  }
  std::unique_ptr<LeaderElection> candidate(const std::string& who, const std::shared_ptr<LockManager>& at) {
    return candidate(at, hooks(who));
  }
  std::unique_ptr<LeaderElection> candidate(const std::shared_ptr<LockManager>& at, ElectionHooks with) {
    return std::make_unique<LeaderElection>(at, electionOptions(), std::move(with));
  }
  /// Moves time on in small steps until `what` was said; when.
  std::optional<Instant> advanceUntil(const std::string& what, int nth = 1) {
    std::atomic<bool> over = false;
    // Not a step more, however late this thread hears of it: the new leader's lease runs.
    std::thread mover([&] {
      while (!over && !protocol.isSaid(what, nth)) {
        clock->advance(50ms);
        std::this_thread::yield();
      }
    });
    const auto when = protocol.await(what, nth);
    over = true;
    mover.join();
    return when;
  }

  /// Of an election on `here` that was destroyed from within: nothing waits for its thread then.
  void awaitEndOfThread() const {
    const auto bound = std::chrono::steady_clock::now() + 20s;
    while (here.use_count() > 1 && std::chrono::steady_clock::now() < bound) std::this_thread::yield();
    EXPECT_EQ(here.use_count(), 1);
  }

  Protocol protocol{clock};
  Protocol terms{clock};  // what the listeners heard of terms
  const std::shared_ptr<LockManager> here = std::make_shared<LockManager>(network, toldOf("a", seed + 2));
  const std::shared_ptr<LockManager> there = std::make_shared<LockManager>(store, toldOf("b", seed + 3));
  const Instant start = clock->now();
};

TEST_F(LeaderElectionTest, ElectsOneAndAnotherOnlyAfterTheFirstWasDeposed) {
  auto a = candidate("a", here);
  ASSERT_TRUE(protocol.await("a elected"));
  EXPECT_TRUE(a->isLeader());
  auto b = candidate("b", there);
  EXPECT_FALSE(b->isLeader());
  const auto former = a->fence();
  ASSERT_TRUE(former);
  EXPECT_TRUE(a->resign(1h));
  EXPECT_FALSE(a->isLeader());
  EXPECT_FALSE(a->fence());
  ASSERT_TRUE(protocol.await("b elected"));
  EXPECT_GT(*b->fence(), *former);
  EXPECT_EQ(protocol.said(), (std::vector<std::string>{"a elected", "a deposed", "b elected"}));
  EXPECT_EQ(terms.said(), (std::vector<std::string>{"a: term began", "a: term ended", "b: term began"}));
  EXPECT_FALSE(a->resign(1h)) << "there is nothing to give up";
}

TEST_F(LeaderElectionTest, ALeaderThatCannotRenewIsDeposedAMarginBeforeAnotherIsElected) {
  auto a = candidate("a", here);
  ASSERT_TRUE(protocol.await("a elected"));
  auto b = candidate("b", there);
  network->failAlways(Call::renew, Fault::unavailable);
  network->failAlways(Call::release, Fault::unavailable);
  network->failAlways(Call::acquire, Fault::unavailable);

  ASSERT_TRUE(clock->awaitWakeUpAt(start + validFor));
  clock->advance(validFor - 1ns);
  EXPECT_TRUE(a->isLeader());
  clock->advance(1ns);
  EXPECT_FALSE(a->isLeader());
  EXPECT_EQ(protocol.await("a deposed"), start + validFor);
  const auto elected = advanceUntil("b elected");
  ASSERT_TRUE(elected);
  EXPECT_GE(*elected, start + ttl);
  EXPECT_TRUE(protocol.await("a: lost"));
}

TEST_F(LeaderElectionTest, CampaignsAgainAfterALossAndTellsThatItsStoreIsDown) {
  auto a = candidate("a", here);
  ASSERT_TRUE(protocol.await("a elected"));
  const auto first = a->fence();
  network->failAlways(Call::renew, Fault::unavailable);
  network->failAlways(Call::acquire, Fault::unavailable);
  ASSERT_TRUE(advanceUntil("a deposed"));
  ASSERT_TRUE(advanceUntil("a: gave up", 3));
  EXPECT_FALSE(a->isLeader());
  network->heal();
  ASSERT_TRUE(advanceUntil("a elected", 2));
  EXPECT_TRUE(a->isLeader());
  EXPECT_GT(a->fence(), first);
}

TEST_F(LeaderElectionTest, CampaignsAgainAfterAnExceptionOfTheStoreThatIsNoneOfOurs) {
  network->onAcquired = [attempt = 0]() mutable {
    if (++attempt == 1) throw std::runtime_error("says the test");
    if (attempt == 2) throw 1;
  };
  auto a = candidate("a", here);
  ASSERT_TRUE(advanceUntil("a elected"));
  EXPECT_TRUE(a->isLeader());
}

TEST_F(LeaderElectionTest, TellsThatItsStoreCannotGiveTheTtl) {
  network->failAlways(Call::acquire, Fault::invalid);
  auto a = candidate("a", here);
  ASSERT_TRUE(advanceUntil("a: noted", 2));
  network->heal();
  ASSERT_TRUE(advanceUntil("a elected"));
}

TEST_F(LeaderElectionTest, WorkInElectedIsToldOfTheEndAndDeposedComesAfterIt) {
  ElectionHooks mine = hooks("a");
  mine.elected = [&](const Term& term) {
    protocol.say("a elected");
    std::promise<void> ended;
    const std::stop_callback onEnd(term.ended, [&] { ended.set_value(); });
    ended.get_future().wait();
    protocol.say("a stops");
  };
  auto a = candidate(here, mine);
  ASSERT_TRUE(protocol.await("a elected"));
  EXPECT_TRUE(a->resign(1h));
  EXPECT_EQ(protocol.said(), (std::vector<std::string>{"a elected", "a stops", "a deposed"}));
}

TEST_F(LeaderElectionTest, NobodyIsElectedWhileDeposedOfOneThatResignsRuns) {
  std::promise<void> inside, leave;
  ElectionHooks slow = hooks("a");
  slow.deposed = [&](const Term&) {
    inside.set_value();
    leave.get_future().wait();
    protocol.say("a deposed");
  };
  auto a = candidate(here, slow);
  ASSERT_TRUE(protocol.await("a elected"));
  auto b = candidate("b", there);
  auto resigned = std::async(std::launch::async, [&] { return a->resign(1h); });
  inside.get_future().wait();
  EXPECT_FALSE(a->isLeader());
  EXPECT_TRUE(here->isLocked("chief")) << "the others are still kept out";
  leave.set_value();
  EXPECT_TRUE(resigned.get());
  ASSERT_TRUE(protocol.await("b elected"));
  EXPECT_EQ(protocol.said(), (std::vector<std::string>{"a elected", "a deposed", "b elected"}));
}

TEST_F(LeaderElectionTest, EndsInTimeWhenACallbackHangsAndSaysSo) {
  const auto leave = std::make_shared<std::promise<void>>();
  ElectionHooks deaf = hooks("a");
  deaf.deposed = [this, leave](const Term&) {
    protocol.say("a hangs");
    leave->get_future().wait();
    protocol.say("a deposed");
  };
  auto a = candidate(here, deaf);
  ASSERT_TRUE(protocol.await("a elected"));
  auto b = candidate("b", there);
  auto ended = std::async(std::launch::async, [&] { a.reset(); });
  ASSERT_TRUE(protocol.await("a hangs"));
  ASSERT_TRUE(clock->awaitWakeUpAt(start + electionOptions().callbackTimeout));
  EXPECT_EQ(ended.wait_for(0s), std::future_status::timeout);
  clock->advance(electionOptions().callbackTimeout);
  EXPECT_EQ(ended.wait_for(20s), std::future_status::ready);
  ASSERT_TRUE(protocol.await("b elected"));
  EXPECT_TRUE(protocol.await("a: callback late"));
  leave->set_value();
  EXPECT_TRUE(protocol.await("a deposed"));
}

TEST_F(LeaderElectionTest, ADeposedThatTakesLongerThanTheMarginIsReported) {
  ElectionHooks slow = hooks("a");
  slow.deposed = [&](const Term&) { clock->advance(margin + 1ms); };
  auto a = candidate(here, slow);
  ASSERT_TRUE(protocol.await("a elected"));
  network->failAlways(Call::renew, Fault::unavailable);
  ASSERT_TRUE(advanceUntil("a: callback late"));
}

TEST_F(LeaderElectionTest, AnElectedThatThrowsGivesUpTheTerm) {
  ElectionHooks broken = hooks("a");
  broken.elected = [&](const Term&) { throw std::runtime_error("no disk"); };
  auto a = candidate(here, broken);
  ASSERT_TRUE(protocol.await("a deposed"));
  auto b = candidate("b", there);
  ASSERT_TRUE(protocol.await("b elected"));
  EXPECT_FALSE(a->isLeader());
  EXPECT_EQ(protocol.said(), (std::vector<std::string>{"a: callback failed", "a deposed", "b elected"}));
}

TEST_F(LeaderElectionTest, DoesNotCampaignForThePauseAfterResigning) {
  auto a = candidate("a", here);
  ASSERT_TRUE(protocol.await("a elected"));
  EXPECT_TRUE(a->resign(30s));
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 30s));
  EXPECT_EQ(network->calls(Call::acquire), 1);
  clock->advance(30s);
  ASSERT_TRUE(protocol.await("a elected", 2));
  EXPECT_TRUE(a->isLeader());
}

TEST_F(LeaderElectionTest, MayBeResignedFromItsOwnCallback) {
  std::unique_ptr<LeaderElection> a;
  std::promise<void> made;
  ElectionHooks mine = hooks("a");
  mine.elected = [&, ready = made.get_future().share()](const Term&) {
    ready.wait();
    EXPECT_TRUE(a->resign(1h));
    EXPECT_FALSE(a->isLeader());
    protocol.say("a elected");
  };
  a = candidate(here, mine);
  made.set_value();
  ASSERT_TRUE(protocol.await("a deposed"));
  EXPECT_EQ(protocol.said(), (std::vector<std::string>{"a elected", "a deposed"}));
}

/// An election that is destroyed by what hooks into the end of its term.
struct SelfEnding {
  std::unique_ptr<LeaderElection> election;
  std::promise<void> made;
  std::optional<std::stop_callback<std::function<void()>>> onEnd;

  ElectionHooks hooks(ElectionHooks with, std::function<void()> gone) {
    const auto elected = with.elected;
    with.elected = [this, elected, gone, ready = made.get_future().share()](const Term& term) {
      ready.wait();
      onEnd.emplace(term.ended, [this, gone] {
        election.reset();
        gone();
      });
      elected(term);
    };
    return with;
  }
};

TEST_F(LeaderElectionTest, MayBeDestroyedByWhatHooksIntoTheEndOfATermThatIsGivenUp) {
  SelfEnding self;
  self.election = candidate(here, self.hooks(hooks("a"), [&] { protocol.say("a destroyed"); }));
  self.made.set_value();
  ASSERT_TRUE(protocol.await("a elected"));
  EXPECT_TRUE(self.election->resign(1h));
  ASSERT_TRUE(protocol.await("a deposed"));
  awaitEndOfThread();
  EXPECT_EQ(protocol.said(), (std::vector<std::string>{"a elected", "a destroyed", "a deposed"}));
}

TEST_F(LeaderElectionTest, MayBeDestroyedByWhatHooksIntoTheEndOfATermThatIsLost) {
  SelfEnding self;
  self.election = candidate(here, self.hooks(hooks("a"), [&] { protocol.say("a destroyed"); }));
  self.made.set_value();
  ASSERT_TRUE(protocol.await("a elected"));
  network->failAlways(Call::renew, Fault::unavailable);
  ASSERT_TRUE(advanceUntil("a deposed"));
  EXPECT_TRUE(protocol.await("a: lost"));
  awaitEndOfThread();
  std::vector<std::string> said = protocol.said();
  std::erase_if(said, [](const std::string& what) { return what.starts_with("a: "); });  // by other threads
  EXPECT_EQ(said, (std::vector<std::string>{"a elected", "a destroyed", "a deposed"}));
}

/// Makes the first lock be lost before the call that has taken it returns.
class LosesTheFirst final : public Listener {
 public:
  explicit LosesTheFirst(std::shared_ptr<FakeClock> clock) : clock_(std::move(clock)) {}
  void on(const Event& event) override {
    if (event.kind == EventKind::acquired && first_.exchange(false)) clock_->advance(1h);
  }

 private:
  const std::shared_ptr<FakeClock> clock_;
  std::atomic<bool> first_ = true;
};

TEST_F(LeaderElectionTest, ATermThatIsLostBeforeItWasToldOfIsNotToldOf) {
  ManagerOptions forgetful = options(seed + 5);
  forgetful.environment.listener = std::make_shared<LosesTheFirst>(clock);
  auto a = candidate("a", std::make_shared<LockManager>(store, forgetful));
  ASSERT_TRUE(protocol.await("a elected"));
  EXPECT_TRUE(a->isLeader());
  EXPECT_EQ(protocol.said(), std::vector<std::string>{"a elected"});
}

TEST_F(LeaderElectionTest, CallbacksNeverOverlapNorComeOutOfTurn) {
  std::atomic<int> inside = 0;
  std::atomic<int> leading = 0;
  std::atomic<int> begun = 0;
  const ElectionHooks strict{.elected =
                                 [&](const Term&) {
                                   EXPECT_EQ(++inside, 1);
                                   EXPECT_EQ(++leading, 1);
                                   ++begun;
                                   --inside;
                                 },
                             .deposed =
                                 [&](const Term&) {
                                   EXPECT_EQ(++inside, 1);
                                   EXPECT_EQ(--leading, 0);
                                   --inside;
                                 }};
  // On a store that wakes its waiters: the clock stands still, so that no lease ends.
  auto a = candidate(std::make_shared<LockManager>(store, options(seed + 4)), strict);
  auto b = candidate(there, strict);
  std::atomic<int> resigned = 0;
  const auto rebel = [&] {
    while (begun < 200) {
      resigned += a->resign(0ms) ? 1 : 0;
      resigned += b->resign(0ms) ? 1 : 0;
      a->isLeader();
    }
  };
  std::thread first(rebel), second(rebel);
  first.join();
  second.join();
  a.reset();
  b.reset();
  EXPECT_EQ(leading, 0) << "each elected has had its deposed";
  EXPECT_GE(resigned, 199);
}

TEST_F(LeaderElectionTest, EndsWithoutWaitingForItsTurn) {
  auto a = candidate("a", here);
  ASSERT_TRUE(protocol.await("a elected"));
  auto b = candidate("b", there);
  b.reset();
  a.reset();
  EXPECT_FALSE(here->isLocked("chief"));
  EXPECT_EQ(protocol.said(), (std::vector<std::string>{"a elected", "a deposed"}));
}

TEST_F(LeaderElectionTest, NamesTheOptionThatIsOutOfRange) {
  const auto messageOf = [&](auto change) -> std::string {
    ElectionOptions bad = electionOptions();
    change(bad);
    try {
      LeaderElection(here, bad, hooks("a"));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(messageOf([](auto& o) { o.ttl = 1ms; }), "ttl is 1ms: it must be 10ms to 24h");
  EXPECT_EQ(messageOf([](auto& o) { o.callbackTimeout = 0ms; }),
            "callbackTimeout is 0s: it must be 1ms to 1h");
  EXPECT_NE(messageOf([](auto& o) { o.safetyMargin = 9s; }), "nothing thrown");
  EXPECT_NE(messageOf([](auto& o) { o.name = ""; }), "nothing thrown");
  EXPECT_EQ(network->calls(Call::acquire), 0);
}

}  // namespace
}  // namespace lockkeeper::test
