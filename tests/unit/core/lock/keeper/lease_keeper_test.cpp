#include <algorithm>
#include <atomic>
#include <latch>
#include <list>
#include <random>
#include <thread>

#include "decorators.h"
#include "lock/keeper/unawaited_releases.h"
#include "lock/manager_fixture.h"
#include "no_threads.h"

#include "lockkeeper/base/loss_listeners.h"

// Many locks on a slow store, slow callbacks, and what is left behind in an outage.

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
namespace {

class LeaseKeeperTest : public ManagerFixture {
 protected:
  void advanceTo(Instant when) { clock->advance(when - clock->now()); }

  /// Leaves a claim behind whose outcome is not known: the store has granted it.
  void leaveBehind(const std::string& key) {
    network->fail(Call::acquire, {Fault::replyLost, Fault::requestLost});
    EXPECT_THROW((void)manager.tryLock(key, {.ttl = 1h}), OutcomeUnknown);
  }

  const Instant start = clock->now();
};

TEST_F(LeaseKeeperTest, TenThousandLocksSurviveAStoreThatTakesASecondForEachAnswer) {
  constexpr int count = 10'000;
  std::atomic<int> renewed = 0;
  std::atomic<int> troubles = 0;
  ManagerOptions counting = options(seed + 2);
  counting.environment.listener = std::make_shared<Hearing>([&](const Event& event) {
    if (event.kind == EventKind::renewalFailed || event.kind == EventKind::lost) ++troubles;
    if (event.kind != EventKind::renewed) return;
    ++renewed;
    renewed.notify_one();
  });
  LockManager many(network, counting);
  std::vector<Lock> held;
  for (int i = 0; i < count; ++i) held.push_back(many.lock(std::to_string(i), {.ttl = 30s}));
  network->hang(Call::renew);
  int ended = 0;
  // The first are renewed a second after they fell due, and fall due again ten seconds later.
  for (int round = 1; round <= 3; ++round) {
    const Instant due = start + round * 11s - 1s;
    ASSERT_TRUE(clock->awaitWakeUpAt(due));
    advanceTo(due);
    // Four calls at once, of 1024 locks at most.
    for (const int calls : {4, 4, 2}) {
      network->awaitHanging(calls);
      clock->advance(1s);
      network->answerHanging();
      // One that was still on its way would count its leases from a later second than the others.
      network->awaitCalls(Call::renew, ended += calls);
    }
    for (int told = renewed; told < round * count; told = renewed) renewed.wait(told);
  }
  EXPECT_EQ(network->calls(Call::renew), 30);
  EXPECT_EQ(troubles, 0);
  EXPECT_TRUE(std::ranges::all_of(held, &Lock::valid));
  network->resume();
}

// A session that holds a lock may end before the driver has returned the grant.
TEST_F(LeaseKeeperTest, ALossThatIsReportedBeforeTheGrantIsFoundAtOnce) {
  struct LosesAtOnce final : Decorator {
    explicit LosesAtOnce(std::shared_ptr<MemoryDriver> store)
        : Decorator(store), breakable(std::move(store)) {}
    AcquireResult acquire(const AcquireRequest& request) override {
      auto result = Decorator::acquire(request);
      breakable->breakLock(request.claim.key, request.deadline);
      return result;
    }
    const std::shared_ptr<MemoryDriver> breakable;
  };
  LockManager unlucky(std::make_shared<LosesAtOnce>(store), options(seed + 2));
  const auto automatic = unlucky.lock("automatic", {.ttl = 30s});
  const auto manual = unlucky.lock("manual", {.ttl = 30s, .renew = Renew::manual});
  listener->await("lost: not the owner any more automatic");
  listener->await("lost: not the owner any more manual");
  EXPECT_EQ(clock->now(), start);
}

TEST_F(LeaseKeeperTest, LossesOfOtherManagersDoNotHideOneThatIsReportedBeforeTheGrant) {
  const auto nameOf = [](int each) { return "other " + std::to_string(each); };
  std::vector<Lock> others;
  for (int each = 0; each < 400; ++each) others.push_back(other.lock(nameOf(each)));
  struct LosesThenOthers final : Decorator {
    LosesThenOthers(std::shared_ptr<LockDriver> inner, std::function<void()> itsLosses)
        : Decorator(std::move(inner)), losses(std::move(itsLosses)) {}
    AcquireResult acquire(const AcquireRequest& request) override {
      auto result = Decorator::acquire(request);
      losses();
      return result;
    }
    const std::function<void()> losses;
  };
  const auto losing = std::make_shared<LosesThenOthers>(store, [&] {
    store->breakLock("order", {});
    for (int each = 0; each < 400; ++each) store->breakLock(nameOf(each), {});
  });
  LockManager unlucky(losing, options(seed + 2));
  const auto held = unlucky.lock("order", {.ttl = 30s, .renew = Renew::manual});
  listener->await("lost: not the owner any more order");
  EXPECT_EQ(clock->now(), start);
}

TEST_F(LeaseKeeperTest, AShortLeaseDoesNotCutTheOthersRenewalShort) {
  const auto lasting = manager.lock("lasting", {.ttl = 30300ms});
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10100ms));
  advanceTo(start + 9900ms);
  const auto brief = manager.lock("brief", {.ttl = 600ms});
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10100ms));
  advanceTo(start + 10100ms);
  network->awaitCalls(Call::renew, 1);
  EXPECT_EQ(network->renewDeadline(), start + 10100ms + 2s);
}

TEST_F(LeaseKeeperTest, ACallThatHangsHoldsUpNoRenewalOfOtherLocks) {
  const auto first = manager.lock("first", {.ttl = 30s});
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10s));
  advanceTo(start + 5s);
  const auto second = manager.lock("second", {.ttl = 30s});
  network->hang(Call::renew);
  advanceTo(start + 10s);
  network->awaitHanging();
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 15s));
  advanceTo(start + 15s);
  network->awaitHanging(2);
  network->resume();
  listener->await("renewed second");
}

TEST_F(LeaseKeeperTest, ASlowCallbackOfOneLossDoesNotDelayTheNext) {
  const auto first = manager.lock("first", {.ttl = 1s, .renew = Renew::manual});
  const auto second = manager.lock("second", {.ttl = 2s, .renew = Renew::manual});
  std::optional<Lock> unneeded(manager.lock("other"));
  const std::stop_callback destroysAnother(first.lost(), [&] { unneeded.reset(); });
  network->hang(Call::release);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 1s - 12ms - 100ms));
  advanceTo(start + 1s);
  network->awaitHanging();
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 2s - 22ms - 200ms));
  advanceTo(start + 2s);
  listener->await("lost: lease ended second");
  EXPECT_TRUE(second.lost().stop_requested());
  network->resume();
  listener->await("released other");
}

TEST_F(LeaseKeeperTest, ASlowCallbackOfALossThatARenewalFindsHoldsUpNoOtherRenewal) {
  const auto first = manager.lock("first", {.ttl = 30s});
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10s));
  advanceTo(start + 1ms);
  const auto second = manager.lock("second", {.ttl = 30s});
  ASSERT_TRUE(store->breakLock("first", {}));
  std::promise<void> entered, leave;
  const std::stop_callback slow(first.lost(), [&] {
    entered.set_value();
    leave.get_future().wait();
  });
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10s));
  advanceTo(start + 10s + 1ms);  // for both, in one call
  entered.get_future().wait();
  listener->await("renewed second");
  EXPECT_EQ(network->calls(Call::renew), 1);
  leave.set_value();
}

TEST_F(LeaseKeeperTest, CallbacksOfALossRunOnTheManagersThreadsWhoeverFindsIt) {
  std::latch entered(4);
  std::promise<void> leave;
  const auto left = leave.get_future().share();
  const auto block = [&] {
    entered.count_down();
    left.wait();
  };
  std::vector<Lock> brief;
  std::list<std::stop_callback<std::function<void()>>> blocks;
  for (const char* key : {"a", "b", "c", "d"}) {
    brief.push_back(manager.lock(key, {.ttl = 1s, .renew = Renew::manual}));
    blocks.emplace_back(brief.back().lost(), block);
  }
  auto held = manager.lock("order", {.ttl = 2s, .renew = Renew::manual});
  auto taken = manager.lock("taken", {.ttl = 30s, .renew = Renew::manual});
  std::promise<std::thread::id> lost, broken;
  const std::stop_callback onLost(held.lost(), [&] { lost.set_value(std::this_thread::get_id()); });
  const std::stop_callback onBroken(taken.lost(), [&] { broken.set_value(std::this_thread::get_id()); });
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 1s - 12ms - 100ms));
  advanceTo(start + 1s);
  entered.wait();  // the expiry threads have no time to look
  advanceTo(start + 2s);
  EXPECT_FALSE(held.valid());
  ASSERT_TRUE(store->breakLock("taken", {}));
  EXPECT_THROW(taken.renew(), LockLost);
  leave.set_value();
  EXPECT_NE(lost.get_future().get(), std::this_thread::get_id());
  EXPECT_NE(broken.get_future().get(), std::this_thread::get_id());
}

/// A store that tells of losses when the test wants it to.
class TellsLosses final : public Decorator, public LossReporting {
 public:
  using Decorator::Decorator;
  void addLossListener(std::weak_ptr<LossListener> listener) override {
    ++added;
    listeners.add(std::move(listener));
  }
  AcquireResult acquire(const AcquireRequest& request) override {
    tokens.push_back(request.claim.token);
    return inner_->acquire(request);
  }

  int added = 0;
  LossListeners listeners;
  std::vector<Token> tokens;

 private:
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<LossReporting>(*this, type);
  }
};

TEST_F(LeaseKeeperTest, OfManyLocksExactlyThoseAreLostThatTheStoreNames) {
  const auto telling = std::make_shared<TellsLosses>(store);
  LockManager many(telling, options(seed + 2));
  std::vector<Lock> held;
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    held.push_back(many.lock(std::to_string(i), {.ttl = 30s + 1ms * (random() % 10'000)}));
  }
  std::vector<Token> lost;
  for (std::size_t i = 0; i < held.size(); i += 3) lost.push_back(telling->tokens[i]);
  telling->listeners.claimsLost(lost);
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i].valid(), i % 3 != 0) << i;
}

TEST_F(LeaseKeeperTest, WithoutAThreadToKeepLeasesTheStoreIsUnavailableAndHearsOfNoListener) {
  const auto telling = std::make_shared<TellsLosses>(store);
  LockManager late(telling, options(seed + 2));
  {
    const NoThreads none;
    for (int i = 0; i < 2; ++i) EXPECT_THROW((void)late.tryLock("order"), StoreUnavailable);
    EXPECT_THROW((void)other.tryLockAll({"order", "another"}), StoreUnavailable) << "two keys in one request";
  }
  EXPECT_EQ(telling->added, 0);
  EXPECT_TRUE(telling->tokens.empty()) << "what could not be kept is not asked for";
  EXPECT_TRUE(late.tryLock("order"));
  EXPECT_TRUE(late.tryLock("another"));
  EXPECT_EQ(telling->added, 1);
}

TEST_F(LeaseKeeperTest, ALossIsToldThoughItsLockAndItsManagerEndAtOnce) {
  std::optional<LockManager> brief(std::in_place, network, options(seed + 2));
  std::optional<Lock> held(brief->lock("order", {.renew = Renew::manual}));
  std::atomic<bool> lost = false;
  const std::stop_callback onLost(held->lost(), [&] { lost = true; });
  ASSERT_TRUE(store->breakLock("order", {}));
  EXPECT_THROW(held->renew(), LockLost);
  held.reset();
  brief.reset();
  EXPECT_TRUE(lost);
}

/// A store that does not answer a release until its deadline, and in the background not at all.
class DeafToReleases final : public Decorator {
 public:
  DeafToReleases(std::shared_ptr<LockDriver> inner, std::shared_ptr<FakeClock> clock)
      : Decorator(std::move(inner)), clock_(std::move(clock)) {}

  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    if (std::this_thread::get_id() != asker) {
      inBackground.set_value();
      goOn.get_future().wait();
      return inner_->release(claim, deadline);
    }
    clock_->advance(std::max(deadline - clock_->now(), 0ns));
    throw OutcomeUnknown("deaf, says the test");
  }

  std::thread::id asker;
  std::promise<void> inBackground;
  std::promise<void> goOn;

 private:
  const std::shared_ptr<FakeClock> clock_;
};

TEST_F(LeaseKeeperTest, ALockThatOutlivesItsManagerWaitsForOneOperationAtMost) {
  const auto deaf = std::make_shared<DeafToReleases>(store, clock);
  std::optional<LockManager> brief(std::in_place, deaf, options(seed + 2));
  std::optional<Lock> held(brief->lock("order", {.ttl = 1h}));
  brief.reset();
  auto gone = std::async(std::launch::async, [&] {
    deaf->asker = std::this_thread::get_id();
    held.reset();
  });
  // What the background does meanwhile has all the time of the world.
  ASSERT_EQ(gone.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(clock->now(), start + 2s);
  deaf->inBackground.get_future().wait();
  deaf->goOn.set_value();
}

TEST_F(LeaseKeeperTest, WhatGoesOnAfterTheManagerReportsNothing) {
  std::atomic<bool> ended = false;
  std::atomic<int> heardTooLate = 0;
  auto hearing = std::make_shared<Hearing>([&](const Event& /*event*/) { heardTooLate += ended; });
  const std::weak_ptr<Hearing> inUse = hearing;
  ManagerOptions heard = options(seed + 2);
  heard.environment.listener = std::move(hearing);
  std::optional<LockManager> brief(std::in_place, network, std::move(heard));
  network->fail(Call::acquire, {Fault::replyLost, Fault::requestLost});
  network->failAlways(Call::release, Fault::unavailable);
  network->hang(Call::release);
  EXPECT_THROW((void)brief->tryLock("order", {.ttl = 1h}), OutcomeUnknown);
  network->awaitHanging();
  auto gone = std::async(std::launch::async, [&] { brief.reset(); });
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 2s));
  clock->advance(2s);
  gone.get();
  ended = true;
  network->resume();
  while (!inUse.expired()) std::this_thread::yield();
  EXPECT_EQ(heardTooLate, 0);
}

TEST_F(LeaseKeeperTest, AnAbandonedClaimThatIsNeverAnsweredHoldsUpNoOther) {
  network->onReleased = [](std::string_view key) {
    if (key == "first") throw OutcomeUnknown("never answered, says the test");
  };
  leaveBehind("first");
  network->awaitCalls(Call::release, 1);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 250ms));
  leaveBehind("second");
  for (int pause = 1; pause <= 2; ++pause) {
    ASSERT_TRUE(clock->awaitWakeUpAt(start + pause * 250ms));
    clock->advance(250ms);
    network->awaitCalls(Call::release, pause + 1);
  }
  EXPECT_TRUE(other.tryLock("second"));
  EXPECT_FALSE(other.tryLock("first"));
}

/// A store of which one server does not answer.
class OneServerSilent final : public Decorator {
 public:
  OneServerSilent(std::shared_ptr<LockDriver> inner, std::shared_ptr<FakeClock> clock)
      : Decorator(std::move(inner)), clock_(std::move(clock)) {}

  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    if (!isSilent || !claim.key.starts_with("silent")) return inner_->release(claim, deadline);
    clock_->advance(deadline - clock_->now());
    throw OutcomeUnknown("never answered, says the test");
  }

  std::atomic<bool> isSilent = false;

 private:
  const std::shared_ptr<FakeClock> clock_;
};

TEST_F(LeaseKeeperTest, OneServerThatIsSilentHoldsUpWhatWasLeftBehindOnOthersOnlyBriefly) {
  const auto cluster = std::make_shared<OneServerSilent>(network, clock);
  LockManager broad(cluster, options(seed + 2));
  network->failAlways(Call::release, Fault::unavailable);
  for (const auto* const key : {"silent/1", "first", "silent/2", "silent/3", "last"})
    EXPECT_EQ(broad.lock(key, {.ttl = 1h}).release(), ReleaseResult::unavailable);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 250ms));
  cluster->isSilent = true;
  network->heal();
  clock->advance(250ms);
  const auto taken = [this] { return store->holder("first", {}) || store->holder("last", {}); };
  for (int i = 0; i < 20'000 && taken(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(taken());
  // One of the silent ones had the whole time, the other two had an eighth of it.
  EXPECT_LE(clock->now(), start + 250ms + 2s + 2 * 250ms);
}

TEST_F(LeaseKeeperTest, AStoreThatIsDownIsAskedForFewOfTheManyThatAreLeftBehind) {
  network->failAlways(Call::release, Fault::unavailable);
  for (int i = 0; i < 20; ++i) leaveBehind(std::to_string(i));
  network->awaitCalls(Call::release, 1);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 250ms));
  const int asked = network->calls(Call::release);
  clock->advance(250ms);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 500ms));
  EXPECT_EQ(network->calls(Call::release), asked + 4);
}

TEST_F(LeaseKeeperTest, FiveThousandLocksThatEndInAnOutageAreReleasedAfterIt) {
  {
    std::vector<Lock> held;
    for (int i = 0; i < 5'000; ++i) held.push_back(manager.lock(std::to_string(i), {.ttl = 1h}));
    network->failAlways(Call::release, Fault::unavailable);
  }
  network->heal();
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 250ms));
  clock->advance(250ms);
  const auto taken = [this] {
    int count = 0;
    for (int i = 0; i < 5'000; ++i) count += store->holder(std::to_string(i), {}).has_value();
    return count;
  };
  for (int i = 0; i < 2'000 && taken() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(taken(), 0);
}

TEST_F(LeaseKeeperTest, ThatTooManyAreLeftBehindIsTold) {
  std::mutex mutex;
  std::vector<std::string> notes;
  ManagerOptions made = options();
  made.environment.listener = std::make_shared<Hearing>([&](const Event& event) {
    if (event.kind == EventKind::noted) notes.emplace_back(event.text);
  });
  detail::UnawaitedReleases releases(network, made.environment, made.owner, 2s, 250ms, mutex, [](Instant) {});
  std::unique_lock held(mutex);
  const Claim claim{"many", Token::generate(*made.environment.random), made.owner};
  network->failAlways(Call::release, Fault::unavailable);
  for (int i = 0; i < 65'536; ++i) releases.abandon(claim, start + 1h);
  releases.work(held);
  EXPECT_TRUE(notes.empty());
  releases.abandon(claim, start + 1h);
  clock->advance(250ms);
  releases.work(held);
  EXPECT_EQ(notes, std::vector<std::string>{
                       "more than 65536 releases wait for the store to answer, or memory is short: some keys "
                       "stay busy until their leases end"});
}

TEST_F(LeaseKeeperTest, WhatHasEndedInAnOutageKeepsNoPlaceFromWhatIsLeftBehindNow) {
  std::mutex mutex;
  const ManagerOptions made = options();
  detail::UnawaitedReleases releases(network, made.environment, made.owner, 2s, 250ms, mutex, [](Instant) {});
  std::unique_lock held(mutex);
  const Claim early{"early", Token::generate(*made.environment.random), made.owner};
  for (int i = 0; i < 65'536; ++i) releases.abandon(early, start + 10s);
  clock->advance(10s);
  const Claim late{"late", Token::generate(*made.environment.random), made.owner};
  ASSERT_TRUE(std::holds_alternative<Granted>(store->acquire({late, 1h, {}})));
  releases.abandon(late, clock->now() + 1h);
  releases.work(held);
  EXPECT_FALSE(store->holder("late", {}));
  EXPECT_EQ(network->calls(Call::release), 1);
  EXPECT_TRUE(listener->heard().empty()) << "no place was missing";
}

TEST_F(LeaseKeeperTest, ANewAbandonedClaimDoesNotCutThePauseOfAnOutageShort) {
  network->failAlways(Call::release, Fault::unavailable);
  leaveBehind("first");
  network->awaitCalls(Call::release, 1);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 250ms));
  leaveBehind("second");
  clock->advance(249ms);
  EXPECT_TRUE(clock->awaitWakeUpAt(start + 250ms));
  EXPECT_EQ(network->calls(Call::release), 1);
}

TEST_F(LeaseKeeperTest, AnExceptionThatIsNoneOfOursEndsNothing) {
  network->onReleased = [thrown = std::make_shared<std::atomic<bool>>(false)](std::string_view) {
    if (!thrown->exchange(true)) throw 1;
  };
  leaveBehind("order");
  network->awaitCalls(Call::release, 1);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 250ms));
  clock->advance(250ms);
  network->awaitCalls(Call::release, 2);
  EXPECT_TRUE(other.tryLock("order"));
}

TEST_F(LeaseKeeperTest, GivingBackDelaysNoRenewal) {
  const auto held = manager.lock("order", {.ttl = 30s});
  network->hang(Call::release);
  leaveBehind("another");
  network->awaitHanging();
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10s));
  advanceTo(start + 10s);
  listener->await("renewed order");
  network->resume();
}

TEST_F(LeaseKeeperTest, NoLengthIsTooLong) {
  const auto held = manager.lock("order", {.maxHold = std::chrono::milliseconds::max()});
  EXPECT_EQ(held.remaining(), 30s - 302ms - 3s);
  auto kept = manager.lock("kept");
  EXPECT_EQ(kept.releaseHeldFor(std::chrono::milliseconds::max()), ReleaseResult::released);
  EXPECT_EQ(store->holder("kept", {})->remaining, 24h);
  auto freed = manager.lock("freed");
  clock->advance(1ms);
  EXPECT_EQ(freed.releaseHeldFor(std::chrono::milliseconds::min()), ReleaseResult::released);
  EXPECT_FALSE(store->holder("freed", {}));
}

TEST_F(LeaseKeeperTest, ALostLockIsNotKeptForLonger) {
  Lock held = manager.lock("order", {.ttl = 10s, .renew = Renew::manual});
  clock->advance(9500ms);
  EXPECT_FALSE(held.valid());
  while (!held.lost().stop_requested()) std::this_thread::yield();
  EXPECT_EQ(held.releaseHeldFor(1min), ReleaseResult::notOwner);
  clock->advance(500ms);
  EXPECT_TRUE(other.tryLock("order")) << "its lease ended by itself";
}

/// Leases of such a length, and a holder who has one.
class AnyLength final : public PlainDecorator {
 public:
  AnyLength(std::shared_ptr<LockDriver> inner, std::chrono::milliseconds length)
      : PlainDecorator(std::move(inner)), length_(length) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    ++asked;
    AcquireResult result = inner_->acquire(request);
    if (auto* granted = std::get_if<Granted>(&result)) {
      granted->leasedFor = length_;
    } else {
      std::get<Busy>(result).retryAfter = length_;
    }
    return result;
  }

  std::atomic<int> asked = 0;

 private:
  const std::chrono::milliseconds length_;
};

TEST_F(LeaseKeeperTest, AHolderForEverOrForNoTimeIsNotAskedWithoutAPause) {
  using std::chrono::milliseconds;
  const Lock holder = other.lock("order");
  // The longest PTTL of Redis among them.
  for (const milliseconds length : {milliseconds{9'000'000'000'000'000}, milliseconds::max(), milliseconds{0},
                                    milliseconds{-5}, milliseconds::min()}) {
    const auto busy = std::make_shared<AnyLength>(store, length);
    LockManager waits(busy, options(seed + 2));
    std::stop_source stop;
    auto result = std::async(std::launch::async, [&] {
      return waits.tryLock("order", {.waitFor = 1h, .stop = stop.get_token()});
    });
    ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 1)) << "it pauses: " << length.count();
    EXPECT_EQ(busy->asked, 1);
    stop.request_stop();
    EXPECT_FALSE(result.get());
  }
}

TEST_F(LeaseKeeperTest, ALeaseForEverNeverEndsAndOneForNoTimeIsGivenBack) {
  using std::chrono::milliseconds;
  for (const milliseconds length : {milliseconds{9'000'000'000'000'000}, milliseconds::max()}) {
    LockManager endless(std::make_shared<AnyLength>(store, length), options(seed + 2));
    const Lock held = endless.lock("order");
    EXPECT_GT(held.remaining(), std::chrono::years{200});
  }
  for (const milliseconds length : {milliseconds{0}, milliseconds{-5}, milliseconds::min()}) {
    LockManager none(std::make_shared<AnyLength>(store, length), options(seed + 2));
    EXPECT_THROW((void)none.tryLock("order"), OutcomeUnknown);
  }
}

TEST(Saturation, NothingOverflows) {
  const Instant late{std::chrono::hours{1}};
  EXPECT_EQ(saturatingAdd(late, std::chrono::milliseconds::max()), Instant::max());
  EXPECT_EQ(saturatingAdd(late, std::chrono::hours::max()), Instant::max());
  EXPECT_EQ(saturatingAdd(late, std::chrono::nanoseconds::max()), Instant::max());
  EXPECT_EQ(saturatingAdd(Instant{}, std::chrono::nanoseconds::max()), Instant::max());
  EXPECT_EQ(saturatingAdd(Instant::min(), std::chrono::milliseconds::min()), Instant::min());
  EXPECT_EQ(saturatingAdd(late, 5ms), late + 5ms);
  EXPECT_EQ(saturated(std::chrono::milliseconds{-7}), -7ms);
}

}  // namespace
}  // namespace lockkeeper::test
