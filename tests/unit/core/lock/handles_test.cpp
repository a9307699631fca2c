#include <memory>
#include <optional>
#include <variant>

#include "decorators.h"
#include "lock/manager_fixture.h"
#include "lockkeeper/error.h"
#include "lockkeeper/mutex.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/permit/shared_mutex.h"
#include "lockkeeper/permit/upgradeable_lock.h"
#include "refusal.h"

namespace lockkeeper::test {
namespace {

/// What objects keep of a manager that is moved or destroyed.
class ManagerHandle : public ManagerFixture {
 protected:
  std::unique_ptr<LockManager> brief = std::make_unique<LockManager>(store, options());
};

TEST_F(ManagerHandle, LocksOfAllKindsGoOnWhenTheirManagerIsDestroyed) {
  Mutex mutex(*brief, "mutex");
  SharedMutex shared(*brief, "shared");
  Semaphore permits(*brief, "permits", 2);
  ReentrantLock again(*brief, "again");
  auto upgradeable = UpgradeableLock::lock(*brief, "upgradeable");
  brief.reset();

  mutex.lock();
  EXPECT_FALSE(other.tryLock("mutex"));
  mutex.unlock();
  shared.lock_shared();
  EXPECT_FALSE(other.tryLock("shared"));
  shared.unlock_shared();
  EXPECT_TRUE(permits.tryAcquire(2));
  EXPECT_TRUE(again.try_lock());
  again.unlock();
  EXPECT_TRUE(upgradeable.tryUpgrade());
}

TEST_F(ManagerHandle, SharesTheLineOfCallersAndTheStop) {
  LockManager moved = std::move(*brief);
  EXPECT_THROW((void)brief->share(), std::logic_error);
  LockManager handle = moved.share();
  const Lock held = handle.lock("order");
  auto waiting = std::async(std::launch::async, [&] { return moved.lock("order"); });
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 1));
  handle.stop();
  EXPECT_THROW(waiting.get(), Cancelled);
  EXPECT_TRUE(moved.stopped());
}

TEST_F(ManagerHandle, PingAsksTheStoreAndLeavesNothing) {
  manager.ping(0ms);
  EXPECT_EQ(network->calls(Call::acquire), 1);
  EXPECT_EQ(network->calls(Call::release), 1);
  EXPECT_FALSE(other.isLocked("lockkeeper.ping"));
  const Lock anothers = other.lock("lockkeeper.ping");
  EXPECT_NO_THROW(manager.ping(0ms)) << "another process asks the same";
  network->failAlways(Call::acquire, Fault::unavailable);
  EXPECT_THROW(manager.ping(0ms), StoreUnavailable);
}

/// A store that promises no fences.
class WithoutFences final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = inner_->acquire(request);
    if (auto* granted = std::get_if<Granted>(&result)) granted->fence = std::nullopt;
    return result;
  }
};

TEST_F(ManagerHandle, AFenceThatIsRequiredIsNeverMadeUp) {
  const Lock held = manager.lock("order");
  EXPECT_EQ(held.requireFence(), held.fence());
  LockManager unfenced(std::make_shared<WithoutFences>(store), options());
  const Lock without = unfenced.lock("another");
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)without.requireFence(); }),
            "the lock 'another' has no fence: its store promises none, or none in this phase of a migration");
  EXPECT_THROW((void)Lock().requireFence(), std::logic_error);
}

TEST_F(ManagerHandle, WhatWorkHasReturnedIsInTheErrorWhenItsLockWasLost) {
  try {
    (void)manager.withLock("order", [&] {
      store->breakLock("order", {});
      return std::make_unique<int>(42);  // which cannot be copied
    });
    ADD_FAILURE() << "the loss was not told";
  } catch (const LockLostWith<std::unique_ptr<int>>& lost) {
    EXPECT_EQ(*lost.result(), 42);
    EXPECT_EQ(lost.code(), ErrorCode::lockLost);
    EXPECT_STREQ(lost.what(), "the lock 'order' was lost before its work was done");
  }
}

}  // namespace
}  // namespace lockkeeper::test
