#include "lockkeeper/permit/upgradeable_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "lock/manager_fixture.h"

namespace lockkeeper::test {
namespace {

class UpgradeableLockTest : public ManagerFixture {
 protected:
  bool awaitWaiting(std::size_t count) { return clock->awaitWaiters(2 * managerThreads + count); }

  LockManager direct{store, options(seed + 2)};  // with the store's queue
};

TEST_F(UpgradeableLockTest, OneAtATimeReadsBesideReaders) {
  auto held = UpgradeableLock::lock(direct, "prices");
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(held.isUpgraded());
  EXPECT_TRUE(other.tryLockShared("prices"));
  EXPECT_FALSE(UpgradeableLock::tryLock(other, "prices"));
  EXPECT_FALSE(other.tryLock("prices"));
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.release(), ReleaseResult::notHeld);
  EXPECT_THROW(held.upgrade(), LockLost);
  EXPECT_TRUE(UpgradeableLock::tryLock(other, "prices"));
}

TEST_F(UpgradeableLockTest, IsAloneWhileItIsUpgradedAndKeepsTheLockWhenItIsNot) {
  const auto before = other.lock("prices").fence();
  auto held = UpgradeableLock::lock(direct, "prices");
  const auto asReader = held.fence();
  held.upgrade();
  EXPECT_TRUE(held.isUpgraded());
  EXPECT_TRUE(held.tryUpgrade()) << "it is";
  const auto asWriter = held.fence();
  EXPECT_FALSE(other.tryLockShared("prices"));
  EXPECT_FALSE(other.tryLock("prices"));
  EXPECT_EQ(held.downgrade(), ReleaseResult::released);
  EXPECT_EQ(held.downgrade(), ReleaseResult::notHeld);
  EXPECT_TRUE(held.valid());
  const auto reader = other.lockShared("prices");
  EXPECT_FALSE(other.tryLock("prices")) << "nobody writes in between";
  ASSERT_TRUE(before && asReader && asWriter && reader.fence());
  EXPECT_GE(*asReader, *before);
  EXPECT_GT(*asWriter, *asReader);
  EXPECT_GE(*reader.fence(), *asWriter);
  EXPECT_FALSE(held.tryUpgrade()) << "there is another reader";
  EXPECT_TRUE(held.valid());
}

TEST_F(UpgradeableLockTest, IsUpgradedBeforeAllWhoWaitForIt) {
  auto held = UpgradeableLock::lock(direct, "prices");
  auto reader = other.lockShared("prices");
  auto writing = std::async(std::launch::async, [&] { return direct.lock("prices"); });
  ASSERT_TRUE(awaitWaiting(1));
  auto upgrading = std::async(std::launch::async, [&] { held.upgrade(); });
  ASSERT_TRUE(awaitWaiting(2));
  EXPECT_FALSE(other.tryLockShared("prices")) << "nobody comes in meanwhile";
  reader.release();
  upgrading.get();
  EXPECT_TRUE(held.isUpgraded());
  EXPECT_EQ(held.downgrade(), ReleaseResult::released);
  EXPECT_FALSE(other.tryLockShared("prices")) << "the writer came first";
  held.release();
  EXPECT_TRUE(writing.get().valid());
}

TEST_F(UpgradeableLockTest, ReadsOnWhenTheOthersStay) {
  auto held = UpgradeableLock::lock(direct, "prices", {.ttl = 1h});
  const auto reader = other.lockShared("prices", {.ttl = 1h});
  auto upgrading = std::async(std::launch::async, [&] { return held.tryUpgrade(10s); });
  ASSERT_TRUE(awaitWaiting(1));
  clock->advance(10s);
  EXPECT_FALSE(upgrading.get());
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(held.isUpgraded());
  EXPECT_TRUE(other.tryLockShared("prices"));
}

TEST_F(UpgradeableLockTest, AWaitForTheOthersEndsWhenItIsStopped) {
  std::stop_source stop;
  auto held = UpgradeableLock::lock(direct, "prices", {.stop = stop.get_token()});
  const auto reader = other.lockShared("prices");
  auto upgrading = std::async(std::launch::async, [&] { held.upgrade(); });
  ASSERT_TRUE(awaitWaiting(1));
  stop.request_stop();
  EXPECT_THROW(upgrading.get(), Cancelled);
  EXPECT_TRUE(held.valid());
}

TEST_F(UpgradeableLockTest, ALossEndsTheWaitForTheOthers) {
  auto held = UpgradeableLock::lock(direct, "prices", {.ttl = 1h});
  const auto reader = other.lockShared("prices");
  auto upgrading = std::async(std::launch::async, [&] { held.upgrade(); });
  ASSERT_TRUE(awaitWaiting(1));
  const auto longest = store->holder("prices", {});
  ASSERT_TRUE(longest);
  ASSERT_TRUE(store->breakLock("prices", {}, &*longest));
  EXPECT_THROW(upgrading.get(), LockLost);
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_TRUE(reader.valid());
}

TEST_F(UpgradeableLockTest, TheLossOfOneOfItsSharesIsTheLossOfTheLock) {
  auto held = UpgradeableLock::lock(direct, "prices", {.ttl = 1h});
  const std::stop_token lost = held.lost();
  clock->advance(1s);
  held.upgrade();
  const auto longest = store->holder("prices", {});
  ASSERT_TRUE(longest);
  ASSERT_TRUE(store->breakLock("prices", {}, &*longest)) << "the right to write";
  listener->await("lost: not the owner any more prices");
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.downgrade(), ReleaseResult::notOwner);
  EXPECT_FALSE(held.valid()) << "once false, it stays false";
  UpgradeableLock moved = std::move(held);
  EXPECT_FALSE(moved.valid());
}

TEST_F(UpgradeableLockTest, ItsEndWaitsForNobodyWhoHearsOfTheLossNorDoesThatOfAForkedChild) {
  std::optional<UpgradeableLock> held = UpgradeableLock::lock(direct, "prices", {.ttl = 1h});
  clock->advance(1s);
  held->upgrade();
  std::promise<void> heard, ended;
  bool hasEnded = false;
  const std::stop_callback onLoss(held->lost(), [&] {
    heard.set_value();
    hasEnded = ended.get_future().wait_for(20s) == std::future_status::ready;
  });
  const auto longest = store->holder("prices", {});
  ASSERT_TRUE(store->breakLock("prices", {}, &*longest)) << "the right to write";
  heard.get_future().wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool right = held->downgrade() == ReleaseResult::notHeld &&
                       held->release() == ReleaseResult::notHeld && held->lost().stop_requested();
    held.reset();
    _exit(right ? 0 : 1);
  }
  EXPECT_EQ(held->downgrade(), ReleaseResult::notOwner);
  held.reset();
  ended.set_value();
  listener->await("lost: not the owner any more prices");
  EXPECT_TRUE(hasEnded);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(UpgradeableLockTest, WhoIsNoReaderAnyMoreDoesNotBecomeTheWriterBeforeItHasHeardOfTheLoss) {
  auto held = UpgradeableLock::lock(manager, "prices");
  ASSERT_TRUE(store->breakLock("prices", clock->now()));
  EXPECT_TRUE(held.valid()) << "it has not heard of it";
  EXPECT_THROW((void)held.tryUpgrade(), LockLost);
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_TRUE(other.tryLock("prices")) << "it keeps nothing";
}

TEST_F(UpgradeableLockTest, AnUpgradeThatCannotBeConfirmedIsGivenBack) {
  auto held = UpgradeableLock::lock(manager, "prices");
  network->fail(Call::renew, {Fault::unavailable});
  EXPECT_THROW((void)held.tryUpgrade(), StoreUnavailable);
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(held.isUpgraded());
  EXPECT_TRUE(other.tryLockShared("prices"));
  EXPECT_TRUE(held.tryUpgrade());
}

TEST_F(UpgradeableLockTest, AnUpgradeWhoseReplyIsLostIsAskedForAgain) {
  auto held = UpgradeableLock::lock(manager, "prices");
  network->fail(Call::acquire, {Fault::replyLost});
  held.upgrade();
  EXPECT_EQ(store->shareHolders("prices", {}).size(), 2U);
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(other.tryLock("prices"));
}

}  // namespace
}  // namespace lockkeeper::test
