// The store's place may have been taken by another server: leases are in doubt.

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "decorators.h"
#include "lock/manager_fixture.h"
#include "lock/turns_driver.h"

#include "lockkeeper/base/loss_listeners.h"

namespace lockkeeper::test {
namespace {

/// A store that tells of doubts when the test wants it to, and can be looked at.
class TellsDoubts final : public Decorator, public DoubtReporting {
 public:
  using Decorator::Decorator;
  void addDoubtListener(std::weak_ptr<LossListener> listener) override { listeners.add(std::move(listener)); }
  std::optional<std::chrono::milliseconds> checkEvery() const override { return pause; }
  void checkServer(Instant /*deadline*/) noexcept override {
    ++looks;
    looks.notify_all();
  }
  void awaitLooks(int count) const {
    for (int done = looks; done < count; done = looks) looks.wait(done);
  }

  void renew(std::span<Renewal> renewals, Instant deadline) override {
    inner_->renew(renewals, deadline);
    if (calls++ == 0) onFirstRenewed();
  }

  LossListeners listeners;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    if (releases++ == 0) onFirstRelease();
    return inner_->release(claim, deadline);
  }

  /// Runs before the store is asked.
  std::function<void()> onFirstRelease = [] {};
  std::atomic<int> releases{0};
  /// Runs when the store has answered, and before core hears of it.
  std::function<void()> onFirstRenewed = [] {};
  std::atomic<int> calls{0};
  std::optional<std::chrono::milliseconds> pause{};
  std::atomic<int> looks{0};

 private:
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<DoubtReporting>(*this, type);
  }
};

class DoubtTest : public ManagerFixture {
 protected:
  using Taken = std::future<std::optional<Lock>>;

  void advanceTo(Instant when) { clock->advance(when - clock->now()); }

  static bool becomes(const Lock& lock, LockState state) {
    for (int i = 0; i < 20'000 && lock.state() != state; ++i) std::this_thread::sleep_for(1ms);
    return lock.state() == state;
  }

  /// The next one in line for "k".
  Taken wait(LockOptions options = {}) {
    options.waitFor = 10h + ++waits_ * 1ms;  // by which it is known that it waits
    const Instant until = clock->now() + *options.waitFor;
    Taken taken = std::async(std::launch::async, [this, options] { return doubting.tryLock("k", options); });
    EXPECT_TRUE(clock->awaitWakeUpAt(until));
    return taken;
  }

  /// A holder of "k" whose grant has several turns, and whom `next` follows.
  Lock holderFollowedBy(Taken& next, const LockOptions& options = {}) {
    Lock before = doubting.lock("k", options);
    Taken holder = wait(options);
    next = wait(options);
    before.release();
    return *holder.get();
  }

  const Instant start = clock->now();
  std::shared_ptr<TellsDoubts> telling =
      std::make_shared<TellsDoubts>(std::make_shared<TurnsDriver>(network, store));
  LockManager doubting{telling, options(seed + 2)};

 private:
  int waits_ = 0;
};

TEST_F(DoubtTest, AllLeasesAreAskedForAtOnceAndSuspectUntilThen) {
  const Lock renewed = doubting.lock("renewed", {.ttl = 1h});
  const Lock manual = doubting.lock("manual", {.ttl = 1h, .renew = Renew::manual});
  const Lock gone = doubting.lock("gone", {.ttl = 1h, .renew = Renew::manual});
  ASSERT_TRUE(store->breakLock("gone", {}));
  clock->advance(10min);
  network->hang(Call::renew);
  telling->listeners.claimsInDoubt();
  for (const Lock* each : {&renewed, &manual, &gone}) EXPECT_EQ(each->state(), LockState::suspect);
  network->resume();
  EXPECT_TRUE(becomes(renewed, LockState::held));
  EXPECT_TRUE(becomes(manual, LockState::held));
  EXPECT_TRUE(becomes(gone, LockState::lost));
  EXPECT_GT(renewed.remaining(), manual.remaining() + 5min) << "who renews by hand has asked for nothing";
  EXPECT_EQ(store->holder("manual", {})->remaining, 50min);
}

TEST_F(DoubtTest, ALeaseThatCannotBeAskedForIsSuspectUntilItCan) {
  const Lock manual = doubting.lock("manual", {.ttl = 1h, .renew = Renew::manual});
  network->failAlways(Call::renew, Fault::unavailable);
  clock->advance(1s);
  telling->listeners.claimsInDoubt();
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 1500ms));
  clock->advance(500ms);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 2s));
  EXPECT_EQ(manual.state(), LockState::suspect);
  network->heal();
  clock->advance(500ms);
  EXPECT_TRUE(becomes(manual, LockState::held));
}

TEST_F(DoubtTest, WhatWasAskedBeforeItAroseDoesNotEndIt) {
  const Lock held = doubting.lock("k", {.ttl = 30s});
  telling->onFirstRenewed = [&] {
    clock->advance(1s);
    network->hang(Call::renew);
    telling->listeners.claimsInDoubt();
  };
  advanceTo(start + 10s);
  listener->await("renewed k");
  EXPECT_EQ(held.state(), LockState::suspect);
  network->awaitHanging();
  network->resume();
  EXPECT_TRUE(becomes(held, LockState::held));
}

TEST_F(DoubtTest, AGrantThatWasAskedForBeforeItAroseIsAskedForAgain) {
  network->onAcquired = [&] {
    clock->advance(1s);
    telling->listeners.claimsInDoubt();
  };
  network->hang(Call::renew);
  const Lock held = doubting.lock("k", {.ttl = 1h, .renew = Renew::manual});
  EXPECT_EQ(held.state(), LockState::suspect);
  network->awaitHanging();
  network->resume();
  EXPECT_TRUE(becomes(held, LockState::held));
}

TEST_F(DoubtTest, ADoubtAboutAKeyThatIsKeptWhileOthersAreWaitedForOutlastsTheWait) {
  Lock busy = other.lock("b", {.ttl = 24h});
  auto waiting = std::async(std::launch::async, [&] {
    return doubting.lockAll({"a", "b"}, {.ttl = 24h, .renew = Renew::manual});
  });
  while (!store->holder("a", {})) std::this_thread::yield();
  network->failAlways(Call::renew, Fault::unavailable);
  clock->advance(1ms);
  telling->listeners.claimsInDoubt();
  network->awaitCalls(Call::renew, 1);
  ASSERT_TRUE(store->breakLock("a", {})) << "the new server has never heard of it";
  busy.release();
  while (waiting.wait_for(0s) != std::future_status::ready) {
    clock->advance(1ms);
    std::this_thread::yield();
  }
  const LockSet set = waiting.get();
  network->heal();
  for (int i = 0; i < 1'000 && set.locks()[0].state() == LockState::suspect; ++i) {
    clock->advance(1ms);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(set.locks()[0].state(), LockState::lost);
}

TEST_F(DoubtTest, TheStoreIsLookedAtWhileThereAreLeases) {
  telling->pause = 1s;
  std::optional<Lock> held(doubting.lock("k", {.ttl = 1h}));
  for (int second = 1; second <= 3; ++second) {
    ASSERT_TRUE(clock->awaitWakeUpAt(start + second * 1s));
    EXPECT_EQ(telling->looks, second - 1);
    clock->advance(1s);
    telling->awaitLooks(second);
  }
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 4s));
  held.reset();
  clock->advance(1s);
  telling->awaitLooks(4);
  // For a minute, since another server may not have heard of the release.
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 5s));
  clock->advance(1min);
  telling->awaitLooks(5);
  clock->advance(10min);
  EXPECT_EQ(telling->looks, 5);
}

TEST_F(DoubtTest, WhatWasGrantedBeforeIsNotHandedOnAnyMore) {
  for (const bool over : {false, true}) {
    Taken next;
    Lock holder = holderFollowedBy(next);
    clock->advance(1ms);
    if (!over) network->hang(Call::renew);
    telling->listeners.claimsInDoubt();
    if (over) {
      EXPECT_TRUE(becomes(holder, LockState::held));
    }
    const int asked = network->calls(Call::acquire);
    holder.release();
    EXPECT_TRUE(next.get());
    EXPECT_EQ(network->calls(Call::acquire), asked + 1) << over;
    network->resume();
  }
}

TEST_F(DoubtTest, WhoTakesALeaseOverWhileItArisesBeginsAfterIt) {
  Taken next;
  Lock holder = holderFollowedBy(next, {.ttl = 10s, .renew = Renew::manual});
  clock->advance(4s);  // less than half is left, so it is renewed first
  telling->onFirstRenewed = [&] {
    clock->advance(1s);
    network->hang(Call::renew);
    telling->listeners.claimsInDoubt();
  };
  holder.release();
  // By the next holder twice, and by a renewer.
  const auto begun = [&] { return next.wait_for(0s) == std::future_status::ready; };
  for (int i = 0; i < 20'000 && network->calls(Call::renew) < 3 && !begun(); ++i) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(begun());
  network->resume();
  EXPECT_EQ(next.get()->state(), LockState::held);
}

TEST_F(DoubtTest, WhatWasReleasedIsReleasedAgainUnlessItsLeaseHasEnded) {
  telling->pause = 1s;
  LockManager looking{telling, options(seed + 3)};
  std::vector<std::string> released;
  network->onReleased = [&](std::string_view key) { released.emplace_back(key); };
  looking.lock("ended", {.ttl = 1s}).release();
  looking.lock("kept", {.ttl = 1h}).releaseHeldFor(30min);
  looking.lock("free", {.ttl = 1h}).release();
  clock->advance(1s);
  const int before = network->calls(Call::release);
  telling->listeners.claimsInDoubt();
  network->awaitCalls(Call::release, before + 1);
  EXPECT_EQ(released, (std::vector<std::string>{"ended", "free", "free"}));
  // Once is enough.
  clock->advance(1ms);
  looking.lock("last", {.ttl = 1h}).release();
  telling->listeners.claimsInDoubt();
  network->awaitCalls(Call::release, before + 3);
  EXPECT_EQ(released, (std::vector<std::string>{"ended", "free", "free", "last", "last"}));
}

TEST_F(DoubtTest, AReleaseThatFindsTheNewServerHasReleased) {
  telling->pause = 1s;
  LockManager looking{telling, options(seed + 3)};
  Lock held = looking.lock("k", {.ttl = 1h});
  clock->advance(1ms);
  telling->onFirstRelease = [&] {
    telling->listeners.claimsInDoubt();
    // Nobody else may release it meanwhile: this one would be told that it was not the holder.
    for (int i = 0; i < 100 && telling->releases == 1; ++i) std::this_thread::sleep_for(1ms);
  };
  EXPECT_EQ(held.release(), ReleaseResult::released);
  network->awaitCalls(Call::release, 2);  // again, because the former server may have heard of the first
}

}  // namespace
}  // namespace lockkeeper::test
