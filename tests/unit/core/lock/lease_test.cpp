#include "lock/lease/lease.h"

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <list>
#include <stop_token>
#include <string>
#include <thread>

#include "decorators.h"
#include "manager_fixture.h"

namespace lockkeeper::test {
namespace {

// With a ttl of 30 s: drift is 1% + 2 ms, the margin 10%.
constexpr auto ttl = 30s;
constexpr auto valid = 30s - 302ms - 3s;

class LeaseTest : public ManagerFixture {
 protected:
  /// Moves the clock to `when`, and on only after the renewer has done what was due.
  void advanceTo(Instant when) { clock->advance(when - clock->now()); }
  void awaitRenewalAt(Instant when) { ASSERT_TRUE(clock->awaitWakeUpAt(when)); }

  const Instant start = clock->now();
};

// A program may hold very many, below 300 bytes each.
TEST_F(LeaseTest, FitsWithItsCountsIntoABlockOf272Bytes) {
  constexpr std::size_t ofTheHeap = sizeof(void*);
  constexpr std::size_t ofTheSharedPointer = 2 * sizeof(void*);
  EXPECT_LE(sizeof(detail::Lease) + ofTheSharedPointer + ofTheHeap, 272);
}

TEST_F(LeaseTest, IsValidToTheNanosecondAndNeverAfter) {
  const auto held = manager.lock("order", {.ttl = ttl, .renew = Renew::manual});
  EXPECT_EQ(held.remaining(), valid);
  advanceTo(start + valid - 1ns);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.state(), LockState::held);
  advanceTo(start + valid);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.remaining(), 0ns);
  EXPECT_EQ(held.state(), LockState::lost);
  // The store still keeps the key from others: the margin is for the holder to stop in.
  EXPECT_FALSE(other.tryLock("order"));
}

TEST_F(LeaseTest, CountsFromBeforeTheRequestWasSent) {
  network->onAcquired = [&] { clock->advance(10s); };
  const auto held = manager.lock("order", {.ttl = ttl, .renew = Renew::manual});
  EXPECT_EQ(held.remaining(), valid - 10s);
}

TEST_F(LeaseTest, TheMarginIsTheCallers) {
  const auto held = manager.lock("order", {.ttl = ttl, .renew = Renew::manual, .safetyMargin = 1s});
  EXPECT_EQ(held.remaining(), 30s - 302ms - 1s);
}

TEST_F(LeaseTest, IsRenewedAtAThirdOfItsTtl) {
  const auto held = manager.lock("order", {.ttl = ttl});
  for (int i = 1; i <= 5; ++i) {
    awaitRenewalAt(start + i * 10s);
    EXPECT_EQ(network->calls(Call::renew), i - 1);
    advanceTo(start + i * 10s);
  }
  awaitRenewalAt(start + 60s);
  EXPECT_EQ(held.remaining(), valid);
  EXPECT_EQ(listener->heard().back(), "renewed order");
}

TEST_F(LeaseTest, ARenewalIsGivenNoLongerThanItsLeaseRuns) {
  const auto held = manager.lock("order", {.ttl = 3s});
  awaitRenewalAt(start + 1s);
  advanceTo(start + 1s);
  network->awaitCalls(Call::renew, 1);
  EXPECT_EQ(network->renewDeadline(), start + 3s - 32ms - 300ms);

  const auto lasting = manager.lock("another", {.ttl = ttl});
  awaitRenewalAt(start + 2s);
  EXPECT_EQ(held.remaining(), 3s - 32ms - 300ms);
}

TEST_F(LeaseTest, RenewalsOfManyLocksGoInFewCalls) {
  std::vector<Lock> held;
  for (int i = 0; i < 2000; ++i) held.push_back(manager.lock(std::to_string(i), {.ttl = ttl}));
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  listener->await("renewed", 2000);
  EXPECT_EQ(network->calls(Call::renew), 2);
  for (const auto& lock : held) EXPECT_EQ(lock.remaining(), valid);
}

TEST_F(LeaseTest, IsSuspectWhileRenewalsFailAndHeldAgainAfterwards) {
  const auto held = manager.lock("order", {.ttl = ttl});
  network->fail(Call::renew, {Fault::unavailable, Fault::requestLost});
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  awaitRenewalAt(start + 13s);
  EXPECT_EQ(held.state(), LockState::suspect);
  EXPECT_EQ(manager.suspectLocks(), 1U);
  EXPECT_TRUE(held.valid());
  advanceTo(start + 13s);
  awaitRenewalAt(start + 16s);
  EXPECT_EQ(held.state(), LockState::suspect);
  advanceTo(start + 16s);
  awaitRenewalAt(start + 26s);
  EXPECT_EQ(held.state(), LockState::held);
  EXPECT_EQ(manager.suspectLocks(), 0U);
  EXPECT_EQ(held.remaining(), valid);
}

TEST_F(LeaseTest, IsLostBeforeItsEndWhenTheStoreStaysAway) {
  const auto held = manager.lock("order", {.ttl = ttl});
  network->failAlways(Call::renew, Fault::unavailable);
  awaitRenewalAt(start + 10s);
  for (auto due = start + 10s; due < start + valid; due += 3s) {
    advanceTo(due);
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(held.lost().stop_requested());
    if (due + 3s < start + valid) awaitRenewalAt(due + 3s);
  }
  ASSERT_TRUE(clock->awaitWakeUpAt(start + valid));
  advanceTo(start + valid);
  listener->await("lost: lease ended order");
  EXPECT_TRUE(held.lost().stop_requested());
  network->heal();
  clock->advance(1s);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.state(), LockState::lost);
}

TEST_F(LeaseTest, ALossIsToldInTimeEvenWhileTheStoreHangs) {
  const auto held = manager.lock("order", {.ttl = ttl});
  network->hang(Call::renew);
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  network->awaitHanging();
  ASSERT_TRUE(clock->awaitWakeUpAt(start + valid));
  advanceTo(start + valid);
  listener->await("lost: lease ended order");
  network->resume();  // the renewal succeeds now: too late
  network->awaitCalls(Call::renew, 1);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.state(), LockState::lost);
}

TEST_F(LeaseTest, WhatWasInvalidOnceStaysInvalidThoughItsRenewalSucceeds) {
  const auto held = manager.lock("order", {.ttl = ttl});
  network->hang(Call::renew);
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  network->awaitHanging();
  clock->advance(valid);
  EXPECT_FALSE(held.valid());
  network->resume();
  network->awaitCalls(Call::renew, 1);
  EXPECT_FALSE(held.valid());
}

TEST_F(LeaseTest, ARenewalThatComesTooLateIsALossThoughNobodyHasLookedYet) {
  const auto held = manager.lock("order", {.ttl = ttl});
  // So many slow callbacks keep all threads that tell losses.
  std::latch entered(4), leave(1);
  std::list<Lock> brief;
  std::list<std::stop_callback<std::function<void()>>> slow;
  for (int i = 0; i < 4; ++i) {
    brief.push_back(manager.lock("brief " + std::to_string(i), {.ttl = 5s, .renew = Renew::manual}));
    slow.emplace_back(brief.back().lost(), [&] {
      entered.count_down();
      leave.wait();
    });
  }
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 5s - 52ms - 500ms));
  advanceTo(start + 900ms);
  const auto later = manager.lock("later", {.ttl = ttl});
  advanceTo(start + 5s);
  entered.wait();
  awaitRenewalAt(start + 10s);
  network->hang(Call::renew);
  advanceTo(start + 10s);
  network->awaitHanging();
  advanceTo(start + valid);
  network->resume();                 // the store renews: its own lease has not ended yet
  listener->await("renewed later");  // by the same call, after the other one
  const LockState state = held.state();
  leave.count_down();
  ASSERT_EQ(state, LockState::lost);
  listener->await("lost: lease ended order");
}

TEST_F(LeaseTest, IsLostWhenTheStoreNamesAnotherOwner) {
  const auto held = manager.lock("order", {.ttl = ttl});
  ASSERT_TRUE(store->breakLock("order", {}));
  const auto thief = other.lock("order");
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  listener->await("lost: not the owner any more order");
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(thief.valid());
}

TEST_F(LeaseTest, UncertainOwnershipIsALossAndNothingIsDeleted) {
  auto held = manager.lock("order", {.ttl = ttl});
  network->fail(Call::renew, {Fault::uncertain});
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  listener->await("lost: ownership uncertain (legacy client) order");
  EXPECT_EQ(held.release(), ReleaseResult::notOwner);
  EXPECT_EQ(network->calls(Call::release), 0);
}

TEST_F(LeaseTest, ALossThatOnlyTheReleaseFindsIsTold) {
  auto held = manager.lock("order", {.ttl = ttl});
  ASSERT_TRUE(store->breakLock("order", {}));
  EXPECT_EQ(held.release(), ReleaseResult::notOwner);
  EXPECT_EQ(listener->heard(),
            (std::vector<std::string>{"acquired order", "lost: not the owner any more order"}));
}

TEST_F(LeaseTest, ALossLetsTheNextCallerOfTheProcessGo) {
  const auto held = manager.lock("order", {.ttl = ttl});
  store->breakLock("order", {});
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  listener->await("lost: not the owner any more order");
  EXPECT_TRUE(manager.tryLock("order"));
}

TEST_F(LeaseTest, EndsAtMaxHoldHoweverWellItIsRenewed) {
  auto held = manager.lock("order", {.ttl = ttl, .maxHold = 45s});
  for (int i = 1; i <= 4; ++i) {
    awaitRenewalAt(start + i * 10s);
    advanceTo(start + i * 10s);
  }
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 45s));
  EXPECT_TRUE(held.valid());
  advanceTo(start + 45s);
  listener->await("lost: maximum hold time reached order");
  EXPECT_FALSE(held.valid());
  EXPECT_FALSE(
      other.tryLock("order"));  // until the store's lease ends, or the holder says that it has stopped
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(other.tryLock("order"));
}

TEST_F(LeaseTest, RenewsByHand) {
  auto held = manager.lock("order", {.ttl = ttl, .renew = Renew::manual});
  clock->advance(20s);
  held.renew();
  EXPECT_EQ(held.remaining(), valid);

  network->fail(Call::renew, {Fault::unavailable});
  EXPECT_THROW(held.renew(), StoreUnavailable);
  EXPECT_EQ(held.state(), LockState::suspect);
  network->fail(Call::renew, {Fault::replyLost});
  EXPECT_THROW(held.renew(), OutcomeUnknown);
  EXPECT_TRUE(held.valid());
  held.renew();
  EXPECT_EQ(held.state(), LockState::held);

  clock->advance(ttl);
  EXPECT_THROW(held.renew(), LockLost);
  held.release();
  EXPECT_THROW(held.renew(), LockLost);
}

TEST_F(LeaseTest, RenewByHandFindsThatTheKeyIsGone) {
  auto held = manager.lock("order", {.ttl = ttl, .renew = Renew::manual});
  store->breakLock("order", {});
  EXPECT_THROW(held.renew(), LockLost);
  EXPECT_FALSE(held.valid());
  listener->await("lost: not the owner any more order");
  EXPECT_TRUE(held.lost().stop_requested());
}

TEST_F(LeaseTest, ReleaseSaysWhatHappened) {
  auto broken = manager.lock("order");
  store->breakLock("order", {});
  const auto next = other.lock("order");
  EXPECT_EQ(broken.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(next.valid());
  EXPECT_FALSE(manager.tryLock("order"));  // the next holder still has it

  auto answeredLate = manager.lock("a");
  network->fail(Call::release, {Fault::replyLost});
  EXPECT_EQ(answeredLate.release(), ReleaseResult::released);

  auto unanswered = manager.lock("b");
  network->fail(Call::release, {Fault::requestLost, Fault::requestLost});
  EXPECT_EQ(unanswered.release(), ReleaseResult::unknown);
  network->awaitCalls(Call::release, 6);  // sent again in the background
  EXPECT_TRUE(other.tryLock("b"));

  auto cut = manager.lock("c");
  network->fail(Call::release, {Fault::unavailable});
  EXPECT_EQ(cut.release(), ReleaseResult::unavailable);
  network->awaitCalls(Call::release, 8);
  EXPECT_TRUE(other.tryLock("c"));
}

TEST_F(LeaseTest, ReleasingALostLockTwiceDoesNotClaimSuccess) {
  auto held = manager.lock("order", {.ttl = ttl, .renew = Renew::manual});
  clock->advance(ttl);
  const auto next = other.lock("order");
  network->fail(Call::release, {Fault::requestLost});
  EXPECT_EQ(held.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(next.valid());
}

TEST_F(LeaseTest, ARenewalInFlightDoesNotReviveAReleasedLock) {
  auto held = manager.lock("order", {.ttl = ttl});
  network->hang(Call::renew);
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  network->awaitHanging();
  EXPECT_EQ(held.release(), ReleaseResult::released);
  network->resume();
  network->awaitCalls(Call::renew, 1);
  EXPECT_EQ(held.state(), LockState::released);
  EXPECT_TRUE(other.tryLock("order"));
}

/// Something happens before the store gets the first renewal, and when it has answered it.
class AroundFirstRenewal final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  void renew(std::span<Renewal> renewals, Instant deadline) override {
    const bool isFirst = calls++ == 0;
    if (isFirst) before();
    inner_->renew(renewals, deadline);
    if (isFirst) after();
  }

  std::function<void()> before = [] {};
  std::function<void()> after = [] {};

 private:
  std::atomic<int> calls{0};
};

TEST_F(LeaseTest, ARenewalInFlightDoesNotLengthenWhatWasLeftToEnd) {
  const auto overtaking = std::make_shared<AroundFirstRenewal>(store);
  LockManager mine(overtaking, options(seed + 2));
  auto held = mine.lock("order", {.ttl = ttl});
  ReleaseResult left{};
  std::promise<void> overtaken;
  overtaking->before = [&] { left = held.releaseHeldFor(12s); };
  overtaking->after = [&] { overtaken.set_value(); };
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  overtaken.get_future().wait();
  EXPECT_EQ(left, ReleaseResult::released);
  for (int i = 0; i < 20'000 && store->holder("order", {})->remaining != 2s; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(store->holder("order", {})->remaining, 2s);
  EXPECT_EQ(held.state(), LockState::released);
}

TEST_F(LeaseTest, NorDoesOneThatIsAnsweredAfterTheEnd) {
  const auto overtaking = std::make_shared<AroundFirstRenewal>(store);
  LockManager mine(overtaking, options(seed + 2));
  auto held = mine.lock("order", {.ttl = ttl});
  overtaking->before = [&] { held.releaseHeldFor(12s); };
  overtaking->after = [this] { clock->advance(2s); };
  awaitRenewalAt(start + 10s);
  advanceTo(start + 10s);
  for (int i = 0; i < 20'000 && store->holder("order", {}); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(store->holder("order", {}));
}

}  // namespace
}  // namespace lockkeeper::test
