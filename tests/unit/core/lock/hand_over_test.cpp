// A lock that goes from one caller of a process to the next without the store.

#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <thread>

#include "manager_fixture.h"
#include "turns_driver.h"

namespace lockkeeper::test {
namespace {

class HandOverTest : public ManagerFixture {
 protected:
  using Taken = std::future<std::optional<Lock>>;

  /// The next one in line for "k".
  Taken wait(LockOptions options = {}) {
    options.waitFor = 10h + ++waits_ * 1ms;  // by which it is known that it waits
    const Instant until = clock->now() + *options.waitFor;
    Taken taken = std::async(std::launch::async, [this, options] { return locks.tryLock("k", options); });
    EXPECT_TRUE(clock->awaitWakeUpAt(until));
    return taken;
  }

  /// A holder of "k" whose grant has several turns, and whom the waiters follow.
  Lock holderFollowedBy(Taken& first, LockOptions options = {}, LockOptions itsOptions = {}) {
    Lock before = locks.lock("k");
    auto holder = wait(itsOptions);
    first = wait(options);
    before.release();
    return *holder.get();
  }

  std::shared_ptr<TurnsDriver> store_ = std::make_shared<TurnsDriver>(network, store);
  LockManager locks{store_, options()};

 private:
  int waits_ = 0;
};

TEST_F(HandOverTest, TheNextInLineGetsTheLockAndAFenceOfItsOwnWithoutTheStore) {
  Lock holder = locks.lock("k");
  EXPECT_EQ(store_->askedTurns, 1U) << "nobody follows";
  std::deque<Taken> line;
  for (int i = 0; i < 4; ++i) line.push_back(wait());
  Fence last = *holder.fence();
  const int asked = network->calls(Call::acquire) + 1;
  EXPECT_EQ(holder.release(), ReleaseResult::released);
  for (Taken& next : line) {
    std::optional<Lock> lock = next.get();
    ASSERT_TRUE(lock && lock->valid());
    EXPECT_GT(*lock->fence(), last);
    last = *lock->fence();
    EXPECT_FALSE(locks.tryLock("k"));
    EXPECT_FALSE(other.tryLock("k"));
    EXPECT_EQ(lock->release(), ReleaseResult::released);
    EXPECT_FALSE(lock->valid());
  }
  EXPECT_EQ(network->calls(Call::acquire), asked);
  EXPECT_EQ(network->calls(Call::release), 2) << "of the first and the last";
  EXPECT_GT(*locks.lock("k").fence(), last);
  EXPECT_EQ(listener->heard().size(), 20U) << "acquired, timed out, released";
}

TEST_F(HandOverTest, EndsAfterTheTurnsThatTheStoreGave) {
  store_->mostTurns = 2;
  Taken second;
  Lock first = holderFollowedBy(second);
  Taken third = wait();
  const int asked = network->calls(Call::acquire);
  first.release();
  Lock held = *second.get();
  EXPECT_EQ(network->calls(Call::acquire), asked);
  held.release();
  EXPECT_TRUE(third.get());
  EXPECT_EQ(network->calls(Call::acquire), asked + 1);
}

TEST_F(HandOverTest, EndsWhenItsTimeIsOver) {
  store_->stay = 10ms;
  Taken next;
  Lock holder = holderFollowedBy(next);
  clock->advance(10ms);
  const int asked = network->calls(Call::acquire);
  holder.release();
  EXPECT_TRUE(next.get());
  EXPECT_EQ(network->calls(Call::acquire), asked + 1);
}

TEST_F(HandOverTest, LastsAQuarterOfTheTimeOfTheClaimWhereTheStoreNamesNone) {
  store_->stay = 0ns;
  for (const bool over : {false, true}) {
    Lock before = locks.lock("k");
    Taken taken = wait();
    Taken next = wait();
    network->onAcquired = [&] { clock->advance(40ms); };
    before.release();
    Lock holder = *taken.get();
    network->onAcquired = [] {};
    clock->advance(over ? 10ms : 9ms);
    const int asked = network->calls(Call::acquire);
    holder.release();
    EXPECT_TRUE(next.get());
    EXPECT_EQ(network->calls(Call::acquire), asked + (over ? 1 : 0));
  }
}

TEST_F(HandOverTest, EndsAtOnceWhenSomebodyElsewhereBeginsToWait) {
  Taken next;
  Lock holder = holderFollowedBy(next);
  clock->advance(1ms);
  store_->reportedAt = clock->now();
  const int asked = network->calls(Call::acquire);
  holder.release();
  EXPECT_TRUE(next.get());
  EXPECT_EQ(network->calls(Call::acquire), asked + 1);
}

TEST_F(HandOverTest, WhoAskedForAnotherTtlGetsIt) {
  Taken next;
  Lock holder = holderFollowedBy(next, {.ttl = 90s});
  const int asked = network->calls(Call::acquire);
  holder.release();
  const Lock lock = *next.get();
  EXPECT_EQ(network->calls(Call::acquire), asked + 1);
  EXPECT_GT(lock.remaining(), 75s);
}

TEST_F(HandOverTest, IsRenewedFirstWhenLessThanHalfIsLeft) {
  for (const bool late : {false, true}) {
    Taken next;
    Lock holder =
        holderFollowedBy(next, {.ttl = 10s, .renew = Renew::manual}, {.ttl = 10s, .renew = Renew::manual});
    // Of the ten seconds, 8.9 less two milliseconds are valid: half of ten is left until after 3.9.
    clock->advance(late ? 3900ms : 3800ms);
    const int renewed = network->calls(Call::renew);
    const int asked = network->calls(Call::acquire);
    holder.release();
    Lock lock = *next.get();
    EXPECT_EQ(network->calls(Call::renew), renewed + (late ? 1 : 0));
    EXPECT_EQ(network->calls(Call::acquire), asked);
    EXPECT_GE(lock.remaining(), 5s);
    lock.release();
  }
}

TEST_F(HandOverTest, ALeaseThatCannotBeRenewedIsGivenBackAndTheNextOneClaims) {
  Taken next;
  Lock holder =
      holderFollowedBy(next, {.ttl = 10s, .renew = Renew::manual}, {.ttl = 10s, .renew = Renew::manual});
  const Fence last = *holder.fence();
  clock->advance(4s);
  network->fail(Call::renew, {Fault::unavailable});
  const int asked = network->calls(Call::acquire);
  const int released = network->calls(Call::release);
  network->hang(Call::acquire);
  holder.release();
  network->awaitCalls(Call::release, released + 1);  // in the background
  network->resume();
  const Lock lock = *next.get();
  EXPECT_EQ(network->calls(Call::acquire), asked + 1);
  EXPECT_GT(*lock.fence(), last);
  EXPECT_GE(lock.remaining(), 5s);
}

TEST_F(HandOverTest, EachHolderHasAMaxHoldOfItsOwn) {
  Taken next;
  Lock holder = holderFollowedBy(next, {.maxHold = 5s}, {.maxHold = 2s});
  clock->advance(1s);
  holder.release();
  Lock lock = *next.get();
  clock->advance(4s);
  EXPECT_TRUE(lock.valid());
  clock->advance(1s);
  EXPECT_FALSE(lock.valid());
  listener->await("lost: maximum hold time reached k");
  EXPECT_TRUE(lock.lost().stop_requested());
  EXPECT_FALSE(holder.lost().stop_requested());
}

TEST_F(HandOverTest, WhoHasHeldTooLongHandsNothingOn) {
  Taken next;
  Lock holder = holderFollowedBy(next, {}, {.maxHold = 2s});
  clock->advance(2s);
  const int asked = network->calls(Call::acquire);
  EXPECT_FALSE(holder.valid());
  holder.release();
  clock->advance(1s);
  EXPECT_TRUE(next.get());
  EXPECT_GT(network->calls(Call::acquire), asked);
}

TEST_F(HandOverTest, ALossThatTheStoreReportsIsThePresentHolders) {
  Taken next;
  Lock holder = holderFollowedBy(next);
  holder.release();
  const Lock lock = *next.get();
  ASSERT_TRUE(store->breakLock("k", {}));
  listener->await("lost: not the owner any more k");
  EXPECT_FALSE(lock.valid());
  EXPECT_FALSE(holder.lost().stop_requested());
}

TEST_F(HandOverTest, ARenewalThatWasUnderWayIsThePresentHolders) {
  const struct {
    std::optional<Fault> fault;
    LockState state;
  } cases[] = {{std::nullopt, LockState::held},
               {Fault::unavailable, LockState::suspect},
               {Fault::uncertain, LockState::lost}};
  for (const auto& [fault, state] : cases) {
    Taken next;
    Lock holder = holderFollowedBy(next, {.ttl = 9s}, {.ttl = 9s});
    network->hang(Call::renew);
    clock->advance(3s);
    network->awaitHanging();
    const int renewed = network->calls(Call::renew);
    holder.release();
    Lock lock = *next.get();
    EXPECT_EQ(lock.state(), LockState::held);
    const auto before = lock.remaining();
    if (fault) network->fail(Call::renew, {*fault});
    network->resume();
    if (fault == Fault::uncertain) {
      listener->await("lost: ownership uncertain (legacy client) k");
    } else if (fault) {
      listener->await("renewal failed k");
    } else {
      listener->await("renewed k");
      EXPECT_GT(lock.remaining(), before);
    }
    EXPECT_EQ(lock.state(), state);
    EXPECT_EQ(network->calls(Call::renew), renewed) << "one is enough";
    lock.release();
    if (fault == Fault::uncertain) {
      ASSERT_TRUE(store->breakLock("k", {}));
    }
  }
}

TEST_F(HandOverTest, ADoubtfulLeaseIsNotHandedOn) {
  Taken next;
  Lock holder = holderFollowedBy(next, {.ttl = 9s}, {.ttl = 9s});
  network->failAlways(Call::renew, Fault::unavailable);
  clock->advance(3s);
  listener->await("renewal failed k");
  ASSERT_EQ(holder.state(), LockState::suspect);
  network->heal();
  const int asked = network->calls(Call::acquire);
  holder.release();
  EXPECT_TRUE(next.get());
  EXPECT_EQ(network->calls(Call::acquire), asked + 1);
}

TEST_F(HandOverTest, WhoIsStoppedOrOutOfTimeGetsNothingAndTheNextOneDoes) {
  std::stop_source stop;
  Taken stopped;
  Lock holder = holderFollowedBy(stopped, {.stop = stop.get_token()});
  Taken next = wait();
  stop.request_stop();
  EXPECT_FALSE(stopped.get());
  const int asked = network->calls(Call::acquire);
  holder.release();
  EXPECT_TRUE(next.get());
  EXPECT_EQ(network->calls(Call::acquire), asked);
}

TEST_F(HandOverTest, ManyThreadsThatComeAndGoNeverMeetAndFencesIncrease) {
  const auto memory = std::make_shared<MemoryDriver>(systemClock());
  LockManager quick(std::make_shared<TurnsDriver>(memory, memory));
  std::atomic<int> inside = 0;
  std::atomic<Fence> last = 0;
  std::atomic<int> faults = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 300; ++round) {
          LockOptions each{.ttl = round % 7 == 0 ? 60s : 30s, .waitFor = i % 4 == 0 ? 1ms : 60s};
          const auto lock = quick.tryLock("hot", each);
          if (!lock) continue;
          if (++inside != 1 || !lock->valid() || *lock->fence() <= last) ++faults;
          last = *lock->fence();
          --inside;
        }
      });
    }
  }
  EXPECT_EQ(faults, 0);
}

}  // namespace
}  // namespace lockkeeper::test
