#include "lockkeeper/owner/owner_token.h"
#include "lockkeeper/driver/queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "../lock/contract_drivers.h"
#include "../lock/manager_fixture.h"
#include "lockkeeper/mutex.h"

namespace lockkeeper::test {
namespace {

class OwnerTokenTest : public ManagerFixture {
 protected:
  const LockOptions heldByHand{.renew = Renew::manual};

  OwnerToken tokenOf(const Lock& held) {
    auto token = manager.ownerToken(held);
    EXPECT_TRUE(token);
    if (!token) return {};
    token->ended = owner.get_token();
    return *token;
  }
  LockManager working(const OwnerToken& token) {
    return LockManager(withOwner(store, {token}, clock), options(seed + 2));
  }

  std::stop_source owner;
};

TEST_F(OwnerTokenTest, WhoWorksForTheOwnerLocksAgainAndNeverReleasesTheOwnersLease) {
  Lock held = manager.lock("k");
  LockManager child = working(tokenOf(held));
  ReentrantLock again(child, "k");
  for (int round = 0; round < 2; ++round) {
    const std::lock_guard first(again);
    const std::lock_guard second(again);
    EXPECT_EQ(again.fence(), held.fence());
    EXPECT_FALSE(other.tryLock("k"));
  }
  EXPECT_TRUE(child.tryLockAll({"k", "l"}));
  Lock once = child.lock("k");
  EXPECT_EQ(once.release(), ReleaseResult::released);
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(other.tryLock("k")) << "it is still the owner's";
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(other.tryLock("k"));
}

TEST_F(OwnerTokenTest, TheEndOfTheOwnerIsALossThatIsToldAtOnce) {
  Lock held = manager.lock("k");
  LockManager child = working(tokenOf(held));
  Lock again = child.lock("k");
  const std::stop_token lost = again.lost();
  owner.request_stop();
  held.release();
  while (!lost.stop_requested()) std::this_thread::yield();
  EXPECT_FALSE(again.valid());
  EXPECT_EQ(again.release(), ReleaseResult::notOwner);
  const auto own = child.tryLock("k");
  ASSERT_TRUE(own) << "a lock of its own, since nobody has the key";
  EXPECT_FALSE(other.tryLock("k"));
}

TEST_F(OwnerTokenTest, WhenTheOwnerStandsStillItIsLostBeforeTheLeaseEnds) {
  const Lock held = manager.lock("k", heldByHand);
  LockManager child = working(tokenOf(held));
  clock->advance(15s);
  const Lock again = child.lock("k");
  EXPECT_LE(again.remaining(), 15s);
  clock->advance(14s);
  EXPECT_FALSE(again.valid()) << "a tenth of what was left is the safety margin";
  EXPECT_FALSE(other.tryLock("k"));
  clock->advance(1s);
  EXPECT_TRUE(other.tryLock("k"));
}

TEST_F(OwnerTokenTest, ItLastsAsLongAsTheOwnerRenews) {
  Lock held = manager.lock("k", heldByHand);
  LockManager child = working(tokenOf(held));
  Lock again = child.lock("k");
  for (int renewal = 0; renewal < 5; ++renewal) {
    clock->advance(10s);
    held.renew();
    again.renew();
    EXPECT_GT(again.remaining(), 25s);
  }
  ASSERT_TRUE(store->breakLock("k", clock->now()));
  EXPECT_THROW(again.renew(), LockLost);
}

TEST_F(OwnerTokenTest, AnotherGrantIsNotTheOwnersAlsoWithTheSameLabel) {
  Lock held = manager.lock("k");
  LockManager child = working(tokenOf(held));
  held.release();
  const Lock next = other.lock("k");  // "tester", too
  EXPECT_FALSE(child.tryLock("k"));
  EXPECT_FALSE(manager.ownerToken(held)) << "it was released";
  EXPECT_FALSE(manager.ownerToken(next)) << "another manager's";
}

TEST_F(OwnerTokenTest, AnOwnerThatTheStoreShowsCutIsStillTheOwner) {
  const Lock held = manager.lock("k");
  LockManager child(withOwner(network, {tokenOf(held)}, clock), options(seed + 2));
  network->shownOfOwner = 3;
  auto again = child.tryLock("k");
  ASSERT_TRUE(again);
  EXPECT_NO_THROW(again->renew());
  EXPECT_TRUE(manager.ownerToken(held));
}

TEST_F(OwnerTokenTest, AGrantThatHasFollowedTheOwnersIsNotPassedOn) {
  const Lock held = manager.lock("k", heldByHand);
  ASSERT_TRUE(store->breakLock("k", clock->now()));
  const Lock next = other.lock("k");  // "tester", too
  ASSERT_TRUE(held.valid()) << "nobody has told it yet";
  EXPECT_FALSE(manager.ownerToken(held));
}

TEST_F(OwnerTokenTest, OtherKeysAndClaimsOfMoreThanTheOwnerHasGoToTheStore) {
  const Share one{.weight = 1, .limit = 2};
  const Lock held = manager.lock("k", {.share = one});
  LockManager child = working(tokenOf(held));
  const auto again = child.tryLock("k", {.share = one});
  ASSERT_TRUE(again);
  EXPECT_EQ(store->shareHolders("k", clock->now()).size(), 1U) << "counted once";
  EXPECT_FALSE(child.tryLock("k", {.share = Share{.weight = 2, .limit = 2}}));
  EXPECT_FALSE(child.tryLock("k"));

  const Lock elsewhere = child.lock("l");
  EXPECT_FALSE(other.tryLock("l"));
}

TEST_F(OwnerTokenTest, TheOwnerOfAWholeKeyHasEveryShareOfIt) {
  const Lock held = manager.lock("k");
  LockManager child = working(tokenOf(held));
  EXPECT_TRUE(child.tryLockShared("k"));
}

TEST_F(OwnerTokenTest, WhoWorksForTheOwnerDoesNotWaitForItInTheStoresQueue) {
  const Lock held = manager.lock("k");
  const auto driver = withOwner(store, {tokenOf(held)}, clock);
  const Token mine = Token::generate(*systemRandom());
  const AcquireRequest request{
      .claim = {"k", mine, "child", std::nullopt}, .ttl = 1min, .deadline = clock->now() + 1s};
  EXPECT_TRUE(
      std::holds_alternative<Granted>(capability<Waitable>(*driver)->acquireWaiting(request, 0s, {})));
}

TEST_F(OwnerTokenTest, ItsOwnLocksAreRenewedBesideTheOwners) {
  const Lock held = manager.lock("k");
  LockManager child = working(tokenOf(held));
  const Lock first = child.lock("a");
  const Lock again = child.lock("k");
  const Lock last = child.lock("z");
  const auto areRenewed = [&] {
    return held.remaining() > 25s && first.remaining() > 25s && last.remaining() > 25s &&
           again.remaining() > 15s;
  };
  for (int third = 0; third < 6; ++third) {
    clock->advance(10s);
    while (!areRenewed()) std::this_thread::yield();
  }
  EXPECT_FALSE(other.tryLock("a"));
  EXPECT_FALSE(other.tryLock("k"));
}

TEST_F(OwnerTokenTest, SharesThatTheStoreDoesNotTellApartAreNotPassedOn) {
  const Lock held = manager.lockShared("k");
  ASSERT_TRUE(manager.ownerToken(held));
  const Lock neighbour = other.lockShared("k");  // "tester", too
  EXPECT_FALSE(manager.ownerToken(held));
}

}  // namespace
}  // namespace lockkeeper::test
