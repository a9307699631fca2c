#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "contract_drivers.h"
#include "lock/lease/local_queue.h"
#include "manager_fixture.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeRandom;
namespace {

class LockManagerTest : public ManagerFixture {};

TEST_F(LockManagerTest, GivesAKeyToOneHolderAtATime) {
  auto first = manager.tryLock("order");
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->valid());
  EXPECT_EQ(first->key(), "order");
  EXPECT_FALSE(manager.tryLock("order"));
  EXPECT_FALSE(other.tryLock("order"));
  EXPECT_TRUE(other.tryLock("another order"));

  EXPECT_EQ(first->release(), ReleaseResult::released);
  EXPECT_FALSE(first->valid());
  EXPECT_EQ(first->release(), ReleaseResult::notHeld);
  EXPECT_TRUE(other.tryLock("order"));
}

TEST_F(LockManagerTest, ReleasesWhenTheHandleGoes) {
  { const auto held = manager.lock("order"); }
  EXPECT_TRUE(other.tryLock("order"));
  std::optional<Lock> held = manager.lock("order");
  held = manager.lock("another");  // assignment releases what was there
  EXPECT_TRUE(other.tryLock("order"));
  EXPECT_FALSE(other.tryLock("another"));
}

TEST_F(LockManagerTest, FencesIncreaseFromGrantToGrant) {
  Fence last = 0;
  for (int i = 0; i < 10; ++i) {
    const auto held = (i % 2 == 0 ? manager : other).lock("order");
    ASSERT_TRUE(held.fence());
    EXPECT_GT(*held.fence(), last);
    last = *held.fence();
  }
}

TEST_F(LockManagerTest, NamespacesKeepApplicationsApart) {
  auto made = options();
  made.keyNamespace = "shop";
  LockManager shop(store, made);
  const auto held = shop.lock("order");
  EXPECT_EQ(held.key(), "order");
  EXPECT_TRUE(manager.tryLock("order"));
  EXPECT_FALSE(manager.tryLock("shop:order"));
}

/// A store whose queue has no place left.
class FullQueue final : public Decorator, public Waitable {
 public:
  using Decorator::Decorator;
  AcquireResult acquireWaiting(const AcquireRequest& /*request*/, std::chrono::nanoseconds /*waitFor*/,
                               std::stop_token /*stop*/) override {
    ++refused;
    return Busy{};
  }

  int refused = 0;

 private:
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Waitable>(*this, type);
  }
};

TEST_F(LockManagerTest, PollsWhereTheStoresQueueHasNoPlace) {
  auto held = other.lock("order");
  const auto full = std::make_shared<FullQueue>(store);
  LockManager many(full, options(seed + 2));
  auto got =
      std::async(std::launch::async, [&] { return many.tryLock("order", {.waitFor = 1h}).has_value(); });
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 1));
  EXPECT_EQ(full->refused, 1);
  held.release();
  clock->advance(1s);
  EXPECT_EQ(got.wait_for(5s), std::future_status::ready);
  clock->advance(1h);
  EXPECT_TRUE(got.get());
}

/// A store whose queue grants at once, as if the holder had just released.
class ShortQueue final : public Decorator, public Waitable {
 public:
  using Decorator::Decorator;
  AcquireResult acquire(const AcquireRequest& request) override {
    ++asked;
    if (onAsk) onAsk();
    return Decorator::acquire(request);
  }
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds /*waitFor*/,
                               std::stop_token /*stop*/) override {
    ++waited;
    if (onWait) onWait();
    return Decorator::acquire(request);
  }

  int asked = 0;
  int waited = 0;
  std::function<void()> onAsk;
  std::function<void()> onWait;

 private:
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Waitable>(*this, type);
  }
};

TEST_F(LockManagerTest, WhoHasLatelyWaitedForAKeyGetsInLineAtOnce) {
  const auto queue = std::make_shared<ShortQueue>(store);
  LockManager waits(queue, options(seed + 2));
  std::optional<Lock> held = other.lock("order");
  queue->onWait = [&] { held.reset(); };
  { const Lock after = waits.lock("order"); }
  EXPECT_EQ(queue->asked, 1) << "nobody knew that it was busy";
  EXPECT_EQ(queue->waited, 1);
  { const Lock again = waits.lock("order"); }
  EXPECT_EQ(queue->asked, 1);
  EXPECT_EQ(queue->waited, 2);
  EXPECT_TRUE(waits.tryLock("order")) << "who does not wait never stands in the queue";
  EXPECT_EQ(queue->asked, 2);
  { const Lock another = waits.lock("another"); }
  EXPECT_EQ(queue->asked, 3) << "others have waited for another key";
  clock->advance(1s);
  { const Lock later = waits.lock("order"); }
  EXPECT_EQ(queue->asked, 4) << "that was long ago";
  EXPECT_EQ(queue->waited, 2);
}

/// Another key whose hash begins and ends as that of `key`.
std::string keyWithHashLike(const std::string& key) {
  const auto differing = [&](const std::string& each) {
    return detail::LocalQueue::hashOf(each) ^ detail::LocalQueue::hashOf(key);
  };
  std::string found;
  for (int i = 0; found.empty() || (differing(found) & 0xF000'003F) != 0; ++i) found = std::to_string(i);
  return found;
}

TEST_F(LockManagerTest, AWaitForOneKeyMakesNoOtherBusy) {
  const auto queue = std::make_shared<ShortQueue>(store);
  LockManager waits(queue, options(seed + 2));
  std::optional<Lock> held = other.lock("order");
  queue->onWait = [&] { held.reset(); };
  { const Lock after = waits.lock("order"); }

  std::promise<void> entered, leave;
  queue->onAsk = queue->onWait = [&] {
    entered.set_value();
    leave.get_future().wait();
  };
  const std::string another = keyWithHashLike("order");
  auto ahead = std::async(std::launch::async, [&] { return waits.tryLock(another, {.waitFor = 10s}); });
  entered.get_future().wait();
  auto behind = std::async(std::launch::async, [&] { return waits.tryLock(another); });
  EXPECT_TRUE(clock->awaitWakeUpAt(clock->now() + 2s)) << "the store has said nothing of this key";
  clock->advance(2s);
  EXPECT_THROW(behind.get(), StoreUnavailable);
  leave.set_value();
  EXPECT_TRUE(ahead.get());
}

/// A store whose queue takes the first claim and does not answer in time.
class LateQueue final : public Decorator, public Waitable {
 public:
  using Decorator::Decorator;
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds /*waitFor*/,
                               std::stop_token /*stop*/) override {
    tokens.push_back(request.claim.token);
    onWait();
    if (tokens.size() == 1) throw OutcomeUnknown("no answer in time, says the test");
    return acquire(request);
  }
  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    released.set_value(claim.token);
    return Decorator::release(claim, deadline);
  }

  std::vector<Token> tokens;
  std::function<void()> onWait;
  std::promise<Token> released;

 private:
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Waitable>(*this, type);
  }
};

TEST_F(LockManagerTest, AWaitThatWasNotAnsweredGoesOnInItsPlace) {
  auto held = other.lock("order");
  const auto late = std::make_shared<LateQueue>(store);
  late->onWait = [&] {
    if (late->tokens.size() == 2) held.release();
  };
  LockManager waits(late, options(seed + 2));
  EXPECT_TRUE(waits.tryLock("order", {.waitFor = 1h}));
  ASSERT_EQ(late->tokens.size(), 2U);
  EXPECT_EQ(late->tokens[0], late->tokens[1]) << "another token has another place";
}

TEST_F(LockManagerTest, AWaitThatWasNotAnsweredBeforeTheEndIsGivenBack) {
  const auto held = other.lock("order");
  const auto late = std::make_shared<LateQueue>(store);
  late->onWait = [&] { clock->advance(1s); };
  LockManager waits(late, options(seed + 2));
  EXPECT_FALSE(waits.tryLock("order", {.waitFor = 1s}));
  auto released = late->released.get_future();
  ASSERT_EQ(released.wait_for(5s), std::future_status::ready) << "it may still be in the store's queue";
  EXPECT_EQ(released.get(), late->tokens[0]);
}

TEST_F(LockManagerTest, WaitsExactlyTheJitteredBackoffBetweenAttempts) {
  const auto held = other.lock("order");
  const Instant start = clock->now();
  auto waiting = std::async(std::launch::async, [&] { return manager.tryLock("order", {.waitFor = 60ms}); });

  // The same random numbers, drawn in the same order: a token for each attempt, then the jitter after it.
  FakeRandom twin(seed);
  Instant expected = start;
  int attempts = 1;
  for (std::chrono::nanoseconds longest = 5ms; expected < start + 60ms; longest *= 2) {
    Token::generate(twin);
    const auto half = longest / 2;
    const auto jitter = twin.upTo(static_cast<std::uint64_t>((longest - half).count()));
    expected = std::min<Instant>(expected + half + std::chrono::nanoseconds(jitter), start + 60ms);
    ASSERT_TRUE(clock->awaitWakeUpAt(expected)) << "after attempt " << attempts;
    EXPECT_EQ(network->calls(Call::acquire), attempts);
    clock->advance(expected - clock->now());
    ++attempts;
  }
  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(network->calls(Call::acquire), attempts);
  EXPECT_EQ(clock->now(), start + 60ms);
}

TEST_F(LockManagerTest, TriesAgainWhenTheHoldersLeaseEndsIfThatIsSooner) {
  const auto held = other.lock("order", {.ttl = 10ms, .renew = Renew::manual});
  const Instant start = clock->now();
  auto made = options();
  made.backoffInitial = 10s;
  made.backoffCap = 10s;
  LockManager patient(network, made);
  auto waiting = std::async(std::launch::async, [&] { return patient.tryLock("order", {.waitFor = 20s}); });
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 11ms));
  clock->advance(11ms);
  EXPECT_TRUE(waiting.get());
}

TEST_F(LockManagerTest, TellsTimeoutAndCancellationApart) {
  const auto held = other.lock("order");
  EXPECT_THROW((void)manager.lock("order", {.waitFor = 0ms}), LockTimeout);

  std::stop_source stop;
  auto waiting = std::async(std::launch::async,
                            [&] { return manager.lock("order", {.waitFor = 1h, .stop = stop.get_token()}); });
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 1));
  stop.request_stop();
  EXPECT_THROW((void)waiting.get(), Cancelled);
}

TEST_F(LockManagerTest, LockWaitsUntilItHasTheLockAndTryLockDoesNot) {
  std::optional<Lock> held = other.lock("order", {.ttl = 24h});
  EXPECT_FALSE(manager.tryLock("order"));
  auto waiting = std::async(std::launch::async, [&] { return manager.lock("order"); });
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 1));
  for (int days = 0; days < 3; ++days) clock->advance(1min);
  EXPECT_EQ(waiting.wait_for(0s), std::future_status::timeout);
  held.reset();
  while (waiting.wait_for(1ms) != std::future_status::ready) clock->advance(10ms);
  EXPECT_TRUE(waiting.get());
}

TEST_F(LockManagerTest, StopEndsAllWaitsAndThoseThatComeButNoLockThatIsHeld) {
  const Lock held = manager.lock("held");
  const Lock busy = other.lock("busy");
  std::vector<std::future<bool>> cancelled;
  for (const char* key :
       {"held", "busy", "busy"}) {  // in line behind a caller of this process, or at the store
    cancelled.push_back(std::async(std::launch::async, [this, key] {
      std::stop_source own;
      try {
        (void)manager.lock(key, {.stop = own.get_token()});
      } catch (const Cancelled&) {
        return true;
      }
      return false;
    }));
  }
  auto trying = std::async(std::launch::async, [&] { return manager.tryLock("busy", {.waitFor = 1h}); });
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 4));
  EXPECT_FALSE(manager.stopped());
  manager.stop();
  for (auto& each : cancelled) EXPECT_TRUE(each.get());
  EXPECT_FALSE(trying.get());

  const int asked = network->calls(Call::acquire);
  EXPECT_TRUE(manager.stopped());
  EXPECT_FALSE(manager.tryLock("free"));
  EXPECT_THROW((void)manager.lock("free"), Cancelled);
  EXPECT_EQ(network->calls(Call::acquire), asked) << "no store is asked any more";
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(other.isLocked("free"));
}

TEST_F(LockManagerTest, ALockThatIsNoneIsAsAfterItsRelease) {
  Lock none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.release(), ReleaseResult::notHeld);
  EXPECT_THROW(none.renew(), LockLost);
  EXPECT_EQ(none.key(), "");
  none = manager.lock("order");
  EXPECT_TRUE(none);
  const Lock taken = std::move(none);
  EXPECT_TRUE(taken);
  EXPECT_FALSE(none);  // NOLINT: moved from, and tested for that
  EXPECT_EQ(none.state(), LockState::released);
  EXPECT_FALSE(none.fence());
  EXPECT_EQ(none.remaining(), 0ns);
  EXPECT_EQ(none.releaseHeldFor(1s), ReleaseResult::notHeld);
}

TEST_F(LockManagerTest, AManagerThatWasMovedFromSaysSo) {
  LockManager moved = std::move(manager);
  EXPECT_TRUE(moved.tryLock("order"));
  EXPECT_THROW((void)manager.tryLock("order"), std::logic_error);  // NOLINT: moved from, and tested for that
  EXPECT_NO_THROW(manager.stop());
  EXPECT_FALSE(manager.stopped());
}

TEST_F(LockManagerTest, CallersOfOneProcessTakeTurnsInOrder) {
  auto held = manager.tryLock("order");
  std::mutex mutex;
  std::vector<std::size_t> order;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      const auto mine = manager.lock("order", {.waitFor = 1h});
      const std::lock_guard guard(mutex);
      order.push_back(i);
    });
    ASSERT_TRUE(clock->awaitWaiters(managerThreads + i + 1));
  }
  const int asked = network->calls(Call::acquire);
  held->release();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  // Those in line did not bother the store, and nobody had to wait out a pause.
  EXPECT_EQ(network->calls(Call::acquire), asked + 5);
}

TEST_F(LockManagerTest, ASecondLockOfTheSameThreadWaitsLikeAnyoneElse) {
  const auto held = manager.lock("order");
  EXPECT_FALSE(manager.tryLock("order"));
  EXPECT_EQ(network->calls(Call::acquire), 1);
}

TEST_F(LockManagerTest, AStoreThatIsDownIsNotBusy) {
  network->failAlways(Call::acquire, Fault::unavailable);
  EXPECT_THROW((void)manager.tryLock("order"), StoreUnavailable);
  EXPECT_THROW((void)manager.lock("order", {.waitFor = 0ms}), StoreUnavailable);
  EXPECT_EQ(network->calls(Call::acquire), 2);
}

TEST_F(LockManagerTest, AStoreThatIsDownIsNotBusyToThoseWhoQueueBehindAnotherCaller) {
  const Lock held = manager.lock("held");
  network->failAlways(Call::acquire, Fault::unavailable);
  auto first =
      std::async(std::launch::async, [&] { return manager.tryLock("k", {.waitFor = 1h}).has_value(); });
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 1));
  EXPECT_THROW((void)manager.tryLock("k", {.waitFor = 0ms}), StoreUnavailable);
  auto second =
      std::async(std::launch::async, [&] { return manager.tryLock("k", {.waitFor = 1ms}).has_value(); });
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 2));
  clock->advance(1ms);
  EXPECT_THROW(second.get(), StoreUnavailable);
  EXPECT_FALSE(manager.tryLock("held", {.waitFor = 0ms})) << "held by this process, whatever the store does";
  network->heal();
  clock->advance(1s);
  EXPECT_TRUE(first.get());
}

TEST_F(LockManagerTest, WhoQueuesBehindAnAttemptThatGetsNoAnswerIsNotToldBusy) {
  const Instant start = clock->now();
  network->hang(Call::acquire);
  auto ahead = std::async(std::launch::async, [&] { return manager.tryLock("k"); });
  network->awaitHanging();
  auto once = std::async(std::launch::async, [&] { return manager.tryLock("k"); });
  auto patient = std::async(std::launch::async, [&] { return manager.lock("k", {.waitFor = 1s}); });
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 2s)) << "as long as an attempt of its own might take";
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 1s));
  clock->advance(2s);
  EXPECT_THROW(once.get(), StoreUnavailable);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 3s));
  clock->advance(1s);
  EXPECT_THROW((void)patient.get(), StoreUnavailable);
  network->resume();
  EXPECT_TRUE(ahead.get());
}

TEST_F(LockManagerTest, WhoQueuesBehindAnAttemptIsToldWhatCameOfIt) {
  struct {
    std::optional<Fault> fault;
    bool busy;
  } const cases[] = {{std::nullopt, false}, {std::nullopt, true}, {Fault::unavailable, false}};
  for (const auto& [fault, busy] : cases) {
    const Lock held = busy ? other.lock("k") : Lock();
    network->hang(Call::acquire);
    auto ahead = std::async(std::launch::async, [&] { return manager.tryLock("k"); });
    network->awaitHanging();
    auto behind = std::async(std::launch::async, [&] { return manager.tryLock("k"); });
    ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 2s));
    if (fault) network->fail(Call::acquire, {*fault});
    const int asked = network->calls(Call::acquire);
    network->resume();
    if (fault) {
      EXPECT_THROW(behind.get(), StoreUnavailable);
      EXPECT_THROW(ahead.get(), StoreUnavailable);
    } else {
      EXPECT_FALSE(behind.get());
      EXPECT_EQ(ahead.get().has_value(), !busy);
    }
    EXPECT_EQ(network->calls(Call::acquire), asked) << "one question was enough for both";
  }
}

TEST_F(LockManagerTest, WhoQueuesBehindAnErrorThatIsNoOutageAsksForHimself) {
  network->hang(Call::acquire);
  auto ahead = std::async(std::launch::async, [&] { return manager.tryLock("k"); });
  network->awaitHanging();
  auto behind = std::async(std::launch::async, [&] { return manager.tryLock("k"); });
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 2s));
  network->fail(Call::acquire, {Fault::config});
  network->resume();
  EXPECT_THROW(ahead.get(), ConfigError);
  EXPECT_TRUE(behind.get());
}

TEST_F(LockManagerTest, StopEndsTheWaitForAnAttemptOfAnother) {
  network->hang(Call::acquire);
  auto ahead = std::async(std::launch::async, [&] { return manager.tryLock("k"); });
  network->awaitHanging();
  auto behind = std::async(std::launch::async, [&] { return manager.tryLock("k"); });
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 2s));
  manager.stop();
  EXPECT_FALSE(behind.get());
  network->resume();
  EXPECT_TRUE(ahead.get());
}

TEST_F(LockManagerTest, WhoQueuesBehindAWaitInTheStoreIsToldBusyAtOnce) {
  LockManager waits(store, options(seed + 6));
  Lock held = other.lock("k");
  auto ahead = std::async(std::launch::async, [&] { return waits.tryLock("k", {.waitFor = 1h}); });
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 1));
  EXPECT_FALSE(waits.tryLock("k"));
  held.release();
  EXPECT_TRUE(ahead.get());
}

TEST_F(LockManagerTest, AWaitOutlivesAnOutage) {
  network->fail(Call::acquire, {Fault::unavailable, Fault::unavailable});
  auto waiting = std::async(std::launch::async, [&] { return manager.tryLock("order", {.waitFor = 1h}); });
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(clock->awaitWaiters(managerThreads + 1));
    clock->advance(10ms);
  }
  EXPECT_TRUE(waiting.get());
}

TEST_F(LockManagerTest, AnOutageToTheEndIsReportedAsSuch) {
  network->failAlways(Call::acquire, Fault::unavailable);
  auto waiting = std::async(std::launch::async, [&] { return manager.tryLock("order", {.waitFor = 20ms}); });
  while (waiting.wait_for(0s) != std::future_status::ready) {
    if (clock->awaitWaiters(managerThreads + 1, 10ms)) clock->advance(5ms);
  }
  EXPECT_THROW((void)waiting.get(), StoreUnavailable);
}

TEST_F(LockManagerTest, ALostReplyIsResolvedWithTheSameTokenAtOnce) {
  network->fail(Call::acquire, {Fault::replyLost});
  const auto held = manager.tryLock("order");
  ASSERT_TRUE(held);
  EXPECT_EQ(network->calls(Call::acquire), 2);
  EXPECT_EQ(network->resends(), 1);
  EXPECT_EQ(held->fence(), Fence{1});  // one grant, not two
  EXPECT_FALSE(other.tryLock("order"));
}

TEST_F(LockManagerTest, AWithdrawalThatComesLateEndsNoLaterClaim) {
  LockManager late(std::make_shared<LateWithdrawal>(store), options(seed + 2));
  const auto held = late.tryLock("order");
  ASSERT_TRUE(held) << "it is asked for again at once";
  EXPECT_FALSE(other.tryLock("order"));
}

TEST_F(LockManagerTest, ALostRequestToABusyKeyIsBusy) {
  const auto held = other.lock("order");
  network->fail(Call::acquire, {Fault::requestLost});
  EXPECT_FALSE(manager.tryLock("order"));
}

TEST_F(LockManagerTest, WhatStaysUnknownIsThrownAndGivenBack) {
  network->fail(Call::acquire, {Fault::replyLost, Fault::requestLost});
  EXPECT_THROW((void)manager.tryLock("order"), OutcomeUnknown);
  network->awaitCalls(Call::release, 1);
  EXPECT_TRUE(other.tryLock("order"));
}

TEST_F(LockManagerTest, GoesOnGivingBackUntilTheStoreAnswers) {
  network->fail(Call::acquire, {Fault::replyLost, Fault::unavailable});
  network->fail(Call::release, {Fault::unavailable, Fault::requestLost});
  EXPECT_THROW((void)manager.tryLock("order"), StoreUnavailable);
  for (int tries = 1; tries <= 2; ++tries) {
    network->awaitCalls(Call::release, tries);
    EXPECT_FALSE(other.tryLock("order"));
    ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 250ms));
    clock->advance(250ms);
  }
  network->awaitCalls(Call::release, 3);
  EXPECT_TRUE(other.tryLock("order"));
}

TEST_F(LockManagerTest, GivesUpGivingBackWhenTheStoresLeaseHasEnded) {
  network->fail(Call::acquire, {Fault::replyLost, Fault::unavailable});
  network->failAlways(Call::release, Fault::unavailable);
  EXPECT_THROW((void)manager.tryLock("order", {.ttl = 1s}), StoreUnavailable);
  network->awaitCalls(Call::release, 1);
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 250ms));
  clock->advance(1s);
  ASSERT_TRUE(clock->awaitWaiters(managerThreads));  // for ever: nothing is left to do
  const auto lock = manager.tryLock("another");
  EXPECT_EQ(network->calls(Call::release), 1);
}

TEST_F(LockManagerTest, AGrantThatComesTooLateIsGivenBack) {
  network->onAcquired = [&] { clock->advance(30s); };
  EXPECT_THROW((void)manager.tryLock("order", {.ttl = 30s}), OutcomeUnknown);
  network->onAcquired = [] {};
  EXPECT_TRUE(manager.tryLock("order"));
}

TEST_F(LockManagerTest, GivingBackALateGrantDoesNotFreeTheNextOne) {
  int grants = 0;
  network->onAcquired = [&] {
    if (++grants == 1) clock->advance(30s);
  };
  network->hang(Call::release);
  auto waiting = std::async(std::launch::async, [&] { return manager.lock("order", {.waitFor = 1h}); });
  network->awaitHanging();
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 1));  // and the pause before the second attempt
  clock->advance(5ms);
  auto held = waiting.get();
  network->resume();
  network->awaitCalls(Call::release, 1);
  EXPECT_FALSE(other.tryLock("order"));
  EXPECT_EQ(held.release(), ReleaseResult::released);
}

TEST_F(LockManagerTest, ConfigurationFaultsAreNotRetried) {
  network->failAlways(Call::acquire, Fault::config);
  EXPECT_THROW((void)manager.tryLock("order", {.waitFor = 1h}), ConfigError);
  EXPECT_EQ(network->calls(Call::acquire), 1);
}

TEST_F(LockManagerTest, WhatADriverHadTakenWhenItThrewSomethingElseIsGivenBack) {
  network->onAcquired = [] { throw std::runtime_error("none of ours, says the test"); };
  EXPECT_THROW((void)manager.tryLock("order"), std::runtime_error);
  network->awaitCalls(Call::release, 1);
  EXPECT_TRUE(other.tryLock("order"));
  network->onAcquired = [] { throw 1; };
  EXPECT_THROW((void)manager.lock("another"), int);
  network->awaitCalls(Call::release, 2);
  EXPECT_TRUE(other.tryLock("another"));

  network->onAcquired = [] { throw std::invalid_argument("nothing was sent, says the test"); };
  EXPECT_THROW((void)manager.tryLock("bad"), std::invalid_argument);
  network->onAcquired = [] {};
  EXPECT_TRUE(manager.tryLock("order")) << "and its line has moved on";
  EXPECT_EQ(network->calls(Call::release), 3) << "that lock's own";
}

TEST_F(LockManagerTest, WithLockRunsUnderTheLockAndReturnsTheResult) {
  EXPECT_EQ(
      manager.withLock("order", {}, [&](Lock& held) { return held.valid() && !other.tryLock("order"); }),
      true);
  bool ran = false;
  manager.withLock("order", {}, [&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_THROW(manager.withLock("order", {}, [&] { throw std::range_error("work failed"); }),
               std::range_error);
  EXPECT_TRUE(other.tryLock("order"));
  EXPECT_THROW(manager.withLock("order", {}, [&] { store->breakLock("order", {}); }), LockLost);
}

TEST_F(LockManagerTest, ALockOutlivesItsManager) {
  auto brief = std::make_unique<LockManager>(store, options());
  auto held = brief->lock("order");
  brief.reset();
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(other.tryLock("order"));
}

TEST(Lock, OthersMayAskWhileItIsReleased) {
  for (int i = 0; i < 200; ++i) {
    std::optional<LockManager> last(std::make_shared<MemoryDriver>());
    Lock held = last->lock("order");
    last.reset();  // so that the release ends all that the Lock does not keep itself
    std::atomic<bool> asked = false;
    const std::jthread other([&] {
      while (held.valid()) {
        EXPECT_GE(held.remaining(), 0ns);
        EXPECT_NE(held.state(), LockState::lost);
        EXPECT_FALSE(held.lost().stop_requested());
        EXPECT_EQ(held.fence(), 1);
        EXPECT_EQ(held.key(), "order");
        asked = true;
      }
    });
    while (!asked) std::this_thread::yield();
    EXPECT_EQ(held.release(), ReleaseResult::released);
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held.state(), LockState::released);
  }
}

TEST_F(LockManagerTest, TheLastLockMayGoInsideItsOwnLossCallback) {
  auto brief = std::make_unique<LockManager>(store, options());
  auto held = std::make_unique<Lock>(brief->lock("order", {.ttl = 1s, .renew = Renew::manual}));
  brief.reset();
  std::promise<void> gone;
  std::optional<std::stop_callback<std::function<void()>>> onLost;
  onLost.emplace(held->lost(), [&] {
    held.reset();
    gone.set_value();
  });
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 1s - 12ms - 100ms));
  clock->advance(1s);
  gone.get_future().get();
}

TEST_F(LockManagerTest, ThousandsOfLocksNeedNoMoreThreadsThanOne) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto first = manager.lock("first");
  const auto before = threads();
  std::vector<Lock> held;
  for (int i = 0; i < 2000; ++i) held.push_back(manager.lock(std::to_string(i)));
  EXPECT_EQ(threads(), before);
}

TEST_F(LockManagerTest, TellsTheListenerAndSurvivesWhatItThrows) {
  struct Throwing : Listener {
    void on(const Event&) override { throw 1; }
  };
  auto made = options();
  made.environment.listener = std::make_shared<Throwing>();
  LockManager careless(store, made);
  EXPECT_EQ(careless.lock("order").release(), ReleaseResult::released);

  { const auto held = manager.lock("order"); }
  const auto held = other.lock("order");
  EXPECT_FALSE(manager.tryLock("order"));
  EXPECT_EQ(listener->heard(), (std::vector<std::string>{"acquired order", "released order", "acquired order",
                                                         "timed out order"}));
}

TEST_F(LockManagerTest, ShowsTheHolderByItsLabel) {
  EXPECT_FALSE(manager.holder("order"));
  const auto held = manager.lock("order");
  const auto holder = other.holder("order");
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->owner, "tester");
  EXPECT_EQ(holder->remaining, 30s);
  EXPECT_EQ(holder->fence, held.fence());
}

TEST_F(LockManagerTest, AForkedChildOwnsNothing) {
  auto held = manager.lock("order");
  ASSERT_TRUE(clock->awaitWaiters(managerThreads));  // none of them is inside malloc, say, during fork()
  const pid_t child = fork();
  if (child == 0) {
    bool refused = false;
    try {
      (void)manager.tryLock("another");
    } catch (const ForkedError&) {
      refused = true;
    }
    const bool right = refused && !held.valid() && held.state() == LockState::released &&
                       held.release() == ReleaseResult::notHeld;
    { const LockManager gone = std::move(manager); }
    { const Lock ended = std::move(held); }
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release(), ReleaseResult::released);
}

TEST(SystemRandom, AForkedChildDoesNotRepeatItsParentsBytes) {
  const auto random = systemRandom();
  (void)Token::generate(*random);  // fills this thread's block
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto text = Token::generate(*random).hex();
    _exit(write(channel[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  char text[2 * Token::size];
  ASSERT_EQ(read(channel[0], text, sizeof(text)), static_cast<ssize_t>(sizeof(text)));
  EXPECT_NE(Token::generate(*random).hex(), std::string(text, sizeof(text)));
  close(channel[0]);
  close(channel[1]);
}

}  // namespace
}  // namespace lockkeeper::test
