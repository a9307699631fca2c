#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>

#include "../lock/contract_drivers.h"
#include "../lock/manager_fixture.h"

#include "lockkeeper/driver/batches.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

/// The embedded store behind a network that fails on demand, which passes several claims on in one call.
class BatchNetwork final : public Decorator, public Batchable {
 public:
  using Decorator::Decorator;

  AcquireResult acquire(const AcquireRequest& request) override {
    ++singles;
    return inner_->acquire(request);
  }
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests) override {
    ++batches;
    auto* const store = capability<Batchable>(*inner_);
    if (faults.empty()) {
      auto results = store->acquireInOrder(requests);
      for (std::size_t each = usable; each < results.size(); ++each) {
        if (auto* const granted = std::get_if<Granted>(&results[each])) granted->leasedFor = 1ms;
      }
      return results;
    }
    const Fault fault = faults.front();
    faults.pop_front();
    if (fault == Fault::unavailable) throw StoreUnavailable("down, says the test");
    if (fault == Fault::config) throw ConfigError("misconfigured, says the test");
    if (fault == Fault::replyLost) (void)store->acquireInOrder(requests);
    throw OutcomeUnknown("reply lost, says the test");
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return type == typeid(Batchable) ? capabilityOf<Batchable>(*this, type) : inner_->findCapability(type);
  }

  std::deque<Fault> faults;
  std::size_t usable = 1000;  // so many grants of a call are long enough to be used
  std::atomic<int> batches{0};
  std::atomic<int> singles{0};
};

/// The same for releases.
class ReleasingNetwork final : public Decorator, public BatchReleasing {
 public:
  using Decorator::Decorator;

  std::vector<ReleaseOutcome> releaseAll(std::span<const Claim> claims, Instant deadline) override {
    ++calls;
    std::optional<Fault> fault;
    if (!faults.empty()) {
      fault = faults.front();
      faults.pop_front();
    }
    if (fault == Fault::unavailable) throw StoreUnavailable("down, says the test");
    if (fault == Fault::requestLost) throw OutcomeUnknown("request lost, says the test");
    std::vector<ReleaseOutcome> outcomes;
    for (const Claim& each : claims) outcomes.push_back(inner_->release(each, deadline));
    if (fault == Fault::replyLost) throw OutcomeUnknown("reply lost, says the test");
    return outcomes;
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return type == typeid(BatchReleasing) ? capabilityOf<BatchReleasing>(*this, type)
                                          : inner_->findCapability(type);
  }

  std::deque<Fault> faults;
  std::atomic<int> calls{0};
};

class LockSetTest : public ManagerFixture {
 protected:
  bool isFree(const std::string& key) { return !store->holder(key, clock->now()); }

  void awaitWaiterOf(const std::string& key) {
    while (store->waiters({&key, 1}, clock->now()).front().empty()) std::this_thread::yield();
  }

  void passTimeUntilReady(const std::future<LockSet>& waiting) {
    while (waiting.wait_for(0s) != std::future_status::ready) {
      clock->advance(1ms);
      std::this_thread::yield();
    }
  }

  std::shared_ptr<BatchNetwork> batching = std::make_shared<BatchNetwork>(store);
  LockManager batch{batching, options(seed + 2)};
};

TEST_F(LockSetTest, OneCallOfADriverThatIsBatchableTakesAllKeysInTheirOrder) {
  const LockSet set = batch.lockAll({"c", "a", "b", "a"});
  EXPECT_EQ(batching->batches, 1);
  EXPECT_EQ(batching->singles, 0);
  ASSERT_EQ(set.locks().size(), 3U);
  EXPECT_EQ(set.locks()[0].key(), "a");
  EXPECT_EQ(set.locks()[2].key(), "c");
  EXPECT_LT(*set.fence("a"), *set.fence("b"));
  EXPECT_THROW((void)set.fence("d"), std::invalid_argument);
  EXPECT_EQ(set.state(), LockState::held);
  EXPECT_EQ(set.remaining(), set.locks()[0].remaining());
}

TEST_F(LockSetTest, BadListsAreRefusedBeforeAnythingIsSent) {
  EXPECT_THROW((void)batch.lockAll(std::vector<std::string_view>{}), std::invalid_argument);
  EXPECT_THROW((void)batch.lockAll({"a", ""}), std::invalid_argument);
  EXPECT_THROW((void)batch.lockAll({"a", "b"}, {.ttl = 1ms}), std::invalid_argument);
  EXPECT_THROW((void)manager.lockAll({"a", std::string(513, 'z')}), std::invalid_argument);
  EXPECT_EQ(network->calls(Call::acquire), 0);
  std::vector<std::string> many;
  for (int index = 0; index <= 1000; ++index) many.push_back(std::to_string(index));
  EXPECT_THROW((void)batch.tryLockAll(many), std::invalid_argument);
  many.pop_back();
  EXPECT_TRUE(batch.tryLockAll(many));
  EXPECT_EQ(batching->batches, 1);
  EXPECT_EQ(batching->singles, 0);
}

TEST_F(LockSetTest, WhoWaitsHoldsTheKeysBeforeAndNoneAfter) {
  for (LockManager* const waiter : {&batch, &manager}) {
    Lock second = other.lock("b");
    auto waiting = std::async(std::launch::async, [&] { return waiter->lockAll({"c", "b", "a"}); });
    while (isFree("a") || clock->waiters() < 2 * managerThreads) std::this_thread::yield();
    EXPECT_TRUE(isFree("c"));
    EXPECT_FALSE(other.tryLock("a"));
    EXPECT_EQ(second.release(), ReleaseResult::released);
    passTimeUntilReady(waiting);
    EXPECT_EQ(waiting.get().locks().size(), 3U);
  }
}

TEST_F(LockSetTest, TheDeadlineIsOneForAllAndWhatWasTakenIsGivenBack) {
  const Lock busy = other.lock("c", {.ttl = 24h});  // however fast the clock runs
  for (LockManager* const mine : {&batch, &manager}) {
    EXPECT_FALSE(mine->tryLockAll({"a", "b", "c"}));
    if (mine == &batch) {
      EXPECT_EQ(batching->singles, 0) << "it is known to be busy";
    }
    EXPECT_TRUE(isFree("a"));
    EXPECT_TRUE(isFree("b"));
    auto waiting = std::async(std::launch::async, [&] {
      return mine->lockAll({"a", "b", "c"}, {.waitFor = 1s});
    });
    const Instant began = clock->now();
    passTimeUntilReady(waiting);
    EXPECT_THROW(waiting.get(), LockTimeout);
    EXPECT_GE(clock->now() - began, 1s);
    EXPECT_TRUE(isFree("a"));
    EXPECT_TRUE(isFree("b"));
  }
}

TEST_F(LockSetTest, WhatOneKeyWasWaitedForIsNotLeftForTheNext) {
  Lock first = other.lock("a", {.ttl = 24h});
  const Lock second = other.lock("b", {.ttl = 24h});
  auto waiting = std::async(std::launch::async, [&] {
    return batch.lockAll({"a", "b"}, {.ttl = 1h, .waitFor = 10s});
  });
  awaitWaiterOf("a");
  clock->advance(8s);
  first.release();
  awaitWaiterOf("b");
  clock->advance(2s);
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready) << "no time passes any more";
  EXPECT_THROW(waiting.get(), LockTimeout);
  EXPECT_TRUE(isFree("a"));
}

TEST_F(LockSetTest, ASetIsNotHandedOutWithALockThatWasLostInTheLastMoment) {
  const Lock busy = other.lock("b", {.ttl = 1h});
  auto waiting = std::async(std::launch::async, [&] { return manager.lockAll({"a", "b"}); });
  while (isFree("a")) std::this_thread::yield();
  network->failAlways(Call::renew, Fault::unavailable);
  network->hang(Call::acquire);
  auto hanging = std::async(std::launch::async, [&] { network->awaitHanging(); });
  while (hanging.wait_for(0s) != std::future_status::ready) {
    clock->advance(1ms);
    std::this_thread::yield();
  }
  ASSERT_TRUE(store->breakLock("b", clock->now()));
  clock->advance(30s);
  ASSERT_TRUE(isFree("a")) << "its lease has ended";
  network->heal();
  network->resume();
  passTimeUntilReady(waiting);
  const LockSet set = waiting.get();
  EXPECT_TRUE(set.valid());
  EXPECT_FALSE(set.lost().stop_requested());
}

// The lease of the first key ends while the second one is being granted.
TEST_F(LockSetTest, AStoreThatIsTooSlowForTheLeaseIsAskedNoLongerThanTheCallerWaits) {
  network->failAlways(Call::renew, Fault::unavailable);
  int asked = 0;
  std::stop_source stop;
  network->onAcquired = [&] {
    if (++asked == 4) stop.request_stop();
    if (asked <= 20) clock->advance(600ms);
  };
  EXPECT_FALSE(manager.tryLockAll({"a", "b"}, {.ttl = 1s}));
  EXPECT_EQ(asked, 2) << "one attempt";
  EXPECT_TRUE(isFree("a") && isFree("b"));

  asked = 0;
  EXPECT_THROW((void)manager.lockAll({"a", "b"}, {.ttl = 1s, .stop = stop.get_token()}), Cancelled);
  EXPECT_EQ(asked, 4);

  asked = 0;
  try {
    (void)manager.lockAll({"a", "b"}, {.ttl = 1s, .waitFor = 2s});
    ADD_FAILURE() << "both were never held at the same time";
  } catch (const LockTimeout& timeout) {
    EXPECT_NE(std::string(timeout.what()).find("'a' was lost while others were being taken"),
              std::string::npos)
        << timeout.what();
  }
  EXPECT_EQ(asked, 4);
}

TEST_F(LockSetTest, AKeyThatThisProcessHoldsIsWaitedForInItsLine) {
  Lock mine = batch.lock("b");
  EXPECT_FALSE(batch.tryLockAll({"a", "b", "c"}));
  EXPECT_TRUE(isFree("a"));
  auto waiting = std::async(std::launch::async, [&] { return batch.lockAll({"a", "b", "c"}); });
  while (isFree("a")) std::this_thread::yield();
  mine.release();
  EXPECT_TRUE(waiting.get());
}

TEST_F(LockSetTest, StopEndsTheWaitAndGivesBack) {
  const Lock busy = other.lock("b");
  auto waiting = std::async(std::launch::async, [&] { return batch.lockAll({"a", "b"}); });
  while (isFree("a")) std::this_thread::yield();
  batch.stop();
  EXPECT_THROW(waiting.get(), Cancelled);
  EXPECT_TRUE(isFree("a"));
  EXPECT_FALSE(batch.tryLockAll({"x", "y"}));
  EXPECT_TRUE(isFree("x"));
}

TEST_F(LockSetTest, TheLossOfOneIsTheLossOfAllAndTheOthersAreKeptUntilTheRelease) {
  LockSet set = batch.lockAll({"a", "b", "c"});
  const std::stop_token lost = set.lost();
  EXPECT_FALSE(lost.stop_requested());
  ASSERT_TRUE(store->breakLock("b", clock->now()));
  EXPECT_FALSE(set.valid());
  EXPECT_EQ(set.state(), LockState::lost);
  EXPECT_EQ(set.remaining(), 0ns);
  while (!lost.stop_requested()) std::this_thread::yield();
  EXPECT_TRUE(set.locks()[0].lost().stop_requested());
  EXPECT_TRUE(set.locks()[0].valid());
  EXPECT_FALSE(isFree("a"));
  EXPECT_FALSE(isFree("c"));
  EXPECT_THROW(set.renew(), LockLost);
  EXPECT_EQ(set.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(isFree("a"));
  EXPECT_TRUE(isFree("c"));
  EXPECT_EQ(set.release(), ReleaseResult::notHeld);
}

TEST_F(LockSetTest, IsSuspectWhenOneIsAndLostWhenAnotherOneIs) {
  LockSet set = manager.lockAll({"a", "b", "c"});
  network->failAlways(Call::renew, Fault::unavailable);
  clock->advance(10s);
  while (set.state() != LockState::suspect) std::this_thread::yield();
  EXPECT_TRUE(set.valid());
  network->heal();
  ASSERT_TRUE(store->breakLock("c", clock->now()));
  EXPECT_THROW(set.renew(), LockLost);
  EXPECT_EQ(set.state(), LockState::lost);
  network->failAlways(Call::renew, Fault::unavailable);
  clock->advance(10s);
  while (set.locks()[0].state() != LockState::suspect) std::this_thread::yield();
  EXPECT_EQ(set.state(), LockState::lost);
}

TEST_F(LockSetTest, AReleaseFreesTheLastKeyFirst) {
  LockSet set = batch.lockAll({"a", "b", "c"});
  EXPECT_EQ(set.release(), ReleaseResult::released);
  std::vector<std::string> released = listener->heard();
  std::erase_if(released, [](const std::string& event) { return !event.starts_with("released"); });
  EXPECT_EQ(released, (std::vector<std::string>{"released c", "released b", "released a"}));
}

TEST_F(LockSetTest, WhoHearsOfTheLossMayEndTheSet) {
  std::optional<LockSet> set = batch.lockAll({"a", "b"});
  std::promise<void> ended;
  const std::stop_callback onLoss(set->lost(), [&] {
    set.reset();
    ended.set_value();
  });
  ASSERT_TRUE(store->breakLock("a", clock->now()));
  ended.get_future().get();
  EXPECT_TRUE(isFree("b"));
}

TEST_F(LockSetTest, TheEndOfTheSetWaitsForNobodyWhoHearsOfTheLoss) {
  std::optional<LockSet> set = batch.lockAll({"a", "b"});
  std::promise<void> heard, ended;
  bool hasEnded = false;
  const std::stop_callback onLoss(set->lost(), [&] {
    heard.set_value();
    hasEnded = ended.get_future().wait_for(20s) == std::future_status::ready;
  });
  ASSERT_TRUE(store->breakLock("a", clock->now()));
  heard.get_future().wait();
  set.reset();
  ended.set_value();
  listener->await("lost: not the owner any more a");
  EXPECT_TRUE(hasEnded);
}

TEST_F(LockSetTest, AKeyThatIsLostWhileAnotherIsWaitedForIsTakenAnew) {
  Lock busy = other.lock("b");
  auto waiting = std::async(std::launch::async, [&] { return batch.lockAll({"a", "b"}); });
  while (isFree("a")) std::this_thread::yield();
  const auto first = store->holder("a", clock->now())->fence;
  ASSERT_TRUE(store->breakLock("a", clock->now()));
  while (isFree("a") || store->holder("a", clock->now())->fence == first) std::this_thread::yield();
  busy.release();
  const LockSet set = waiting.get();
  EXPECT_TRUE(set.valid());
  EXPECT_GT(*set.fence("a"), *first);
  EXPECT_FALSE(set.lost().stop_requested()) << "that was the one before";
}

TEST_F(LockSetTest, MaxHoldCountsFromWhenTheLastWasTaken) {
  Lock busy = other.lock("b", {.ttl = 1h});
  auto waiting = std::async(std::launch::async, [&] {
    return batch.lockAll({"a", "b"}, {.ttl = 1h, .maxHold = 10s});
  });
  while (isFree("a")) std::this_thread::yield();
  const auto first = store->holder("a", clock->now())->fence;
  awaitWaiterOf("b");
  clock->advance(30s);
  busy.release();
  const LockSet set = waiting.get();
  EXPECT_TRUE(set.valid());
  EXPECT_EQ(set.fence("a"), first) << "nobody else had it meanwhile";
  EXPECT_EQ(set.remaining(), 10s);
  clock->advance(10s);
  EXPECT_FALSE(set.valid());
}

TEST_F(LockSetTest, WithManualRenewalTheyAreRenewedUntilAllAreTakenAndThenNoMore) {
  Lock busy = other.lock("b", {.ttl = 1h});
  auto waiting = std::async(std::launch::async, [&] {
    return batch.lockAll({"a", "b"}, {.ttl = 30s, .renew = Renew::manual});
  });
  while (isFree("a")) std::this_thread::yield();
  for (int second = 0; second < 60; ++second) {
    const Instant renewed = clock->now() + 20s;
    clock->advance(1s);
    while (*store->holder("a", clock->now())->remaining < 15s && clock->now() < renewed)
      std::this_thread::yield();
  }
  busy.release();
  const LockSet set = waiting.get();
  EXPECT_TRUE(set.valid());
  clock->advance(31s);
  EXPECT_FALSE(set.valid());
  EXPECT_TRUE(isFree("a"));
  EXPECT_TRUE(isFree("b"));
}

TEST_F(LockSetTest, ALostReplyIsAskedForAgainWithTheSameClaims) {
  batching->faults = {Fault::replyLost};
  const LockSet set = batch.lockAll({"a", "b"});
  EXPECT_EQ(batching->batches, 2);
  EXPECT_EQ(*set.fence("b"), 2U) << "the grants of the first time";
}

TEST_F(LockSetTest, ADoubtAboutOneGivesAllBack) {
  batching->faults = {Fault::replyLost, Fault::requestLost};
  EXPECT_THROW((void)batch.tryLockAll({"a", "b"}), OutcomeUnknown);
  while (!isFree("a") || !isFree("b")) std::this_thread::yield();
  batching->faults = {Fault::config};
  EXPECT_THROW((void)batch.lockAll({"a", "b"}), ConfigError);
  EXPECT_TRUE(batch.tryLockAll({"a", "b"}));
}

TEST_F(LockSetTest, WhatIsGrantedForTooShortATimeIsGivenBack) {
  batching->usable = 1;
  try {
    (void)batch.tryLockAll({"a", "b", "c"});
  } catch (const Error&) {  // or they are claimed again, one by one
  }
  for (const char* const key : {"a", "b", "c"}) {
    ASSERT_TRUE(waitUntil([&] { return isFree(key); }, 10s)) << key;
  }
}

TEST_F(LockSetTest, AWithdrawalThatComesLateEndsNoLaterClaim) {
  LockManager late(std::make_shared<LateWithdrawal>(store), options(seed + 3));
  const LockSet set = late.lockAll({"a", "b"});
  EXPECT_FALSE(isFree("a"));
  EXPECT_FALSE(isFree("b"));
}

TEST_F(LockSetTest, OneCallOfADriverThatCanFreesAllKeys) {
  const auto releasing = std::make_shared<ReleasingNetwork>(store);
  LockManager mine(releasing, options(seed + 3));
  LockSet set = mine.lockAll({"a", "b", "c"});
  EXPECT_EQ(set.release(), ReleaseResult::released);
  EXPECT_EQ(releasing->calls, 1);
  std::vector<std::string> released = listener->heard();
  std::erase_if(released, [](const std::string& event) { return !event.starts_with("released"); });
  EXPECT_EQ(released, (std::vector<std::string>{"released c", "released b", "released a"}));
  { const LockSet ended = mine.lockAll({"a", "b", "c"}); }
  EXPECT_EQ(releasing->calls, 2) << "the destructor, too";
  { const LockSet one = mine.lockAll({"a"}); }
  EXPECT_EQ(releasing->calls, 2);
  EXPECT_TRUE(isFree("a") && isFree("b") && isFree("c"));
}

TEST_F(LockSetTest, WhatOneCallIsToFreeIsAskedForAgainAndLeftToTheManagerAsForOneKey) {
  const auto releasing = std::make_shared<ReleasingNetwork>(store);
  LockManager mine(releasing, options(seed + 3));
  releasing->faults = {Fault::replyLost};
  EXPECT_EQ(mine.lockAll({"a", "b"}).release(), ReleaseResult::released);
  EXPECT_EQ(releasing->calls, 2);
  releasing->faults = {Fault::requestLost, Fault::requestLost};
  EXPECT_EQ(mine.lockAll({"a", "b"}).release(), ReleaseResult::unknown);
  while (!isFree("a") || !isFree("b")) clock->advance(1ms);
  releasing->faults = {Fault::unavailable};
  EXPECT_EQ(mine.lockAll({"a", "b"}).release(), ReleaseResult::unavailable);
  while (!isFree("a") || !isFree("b")) clock->advance(1ms);
  LockSet set = mine.lockAll({"a", "b", "c"});
  ASSERT_TRUE(store->breakLock("b", clock->now()));
  EXPECT_EQ(set.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(isFree("a") && isFree("c"));
}

TEST_F(LockSetTest, AStoreThatFailsHalfwayIsWaitedForOrEverythingIsGivenBack) {
  batching->faults = {Fault::unavailable, Fault::unavailable};
  EXPECT_THROW((void)batch.tryLockAll({"a", "b"}), StoreUnavailable);
  EXPECT_TRUE(batch.lockAll({"a", "b"}));
  network->onAcquired = [this] { network->failAlways(Call::acquire, Fault::unavailable); };
  EXPECT_THROW((void)manager.tryLockAll({"a", "b"}), StoreUnavailable);
  EXPECT_TRUE(isFree("a"));
}

TEST_F(LockSetTest, AReleaseIsBoundedByOneTimeoutHoweverManyKeysThereAre) {
  LockSet set = manager.lockAll({"a", "b", "c", "d"});
  std::atomic<std::thread::id> caller;
  std::atomic<int> askedByCaller{0};
  std::atomic<bool> isDown{true};
  network->onReleased = [&](std::string_view) {
    if (caller == std::this_thread::get_id()) ++askedByCaller;
    if (isDown) throw StoreUnavailable("down, says the test");
  };
  network->hang(Call::release);
  auto releasing = std::async(std::launch::async, [&] {
    caller = std::this_thread::get_id();
    return set.release();
  });
  network->awaitHanging();
  clock->advance(2s);  // the operationTimeout
  network->resume();
  EXPECT_EQ(releasing.get(), ReleaseResult::unavailable);
  EXPECT_EQ(askedByCaller, 1) << "others in the background";
  isDown = false;
  for (const char* const key : {"a", "b", "c", "d"}) {
    while (!isFree(key)) clock->advance(1ms);
  }
}

TEST_F(LockSetTest, AForkedChildOwnsNothing) {
  LockSet set = batch.lockAll({"a", "b"});
  ASSERT_TRUE(clock->awaitWaiters(managerThreads));  // none of them is inside malloc, say, during fork()
  const pid_t child = fork();
  if (child == 0) {
    const bool right = !set.valid() && set.state() == LockState::released && set.lost().stop_requested() &&
                       set.release() == ReleaseResult::notHeld;
    { const LockSet ended = std::move(set); }
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(set.valid());
  EXPECT_EQ(set.release(), ReleaseResult::released);
}

TEST_F(LockSetTest, AnEmptySetIsAsAfterARelease) {
  LockSet set;
  EXPECT_FALSE(set);
  EXPECT_EQ(set.state(), LockState::released);
  EXPECT_EQ(set.release(), ReleaseResult::notHeld);
  EXPECT_TRUE(set.locks().empty());
  EXPECT_FALSE(set.lost().stop_requested());
  EXPECT_THROW(set.renew(), LockLost);
  set = batch.lockAll({"a", "b"});
  EXPECT_TRUE(set);
  set = batch.lockAll({"c"});
  EXPECT_TRUE(isFree("a"));
  set = LockSet();
  EXPECT_TRUE(isFree("c"));
}

}  // namespace
}  // namespace lockkeeper::test
