#include "lockkeeper/mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lock/manager_fixture.h"

namespace lockkeeper::test {
namespace {

class ReentrantLockTest : public ManagerFixture {
 protected:
  ReentrantLock owner{manager, "k"};
};

TEST_F(ReentrantLockTest, TheOwnerLocksAgainWithOneLeaseAndItsLastUnlockFreesTheKey) {
  {
    const std::lock_guard first(owner);
    const auto fence = owner.fence();
    {
      const std::lock_guard second(owner);
      EXPECT_EQ(owner.levels(), 2U);
      EXPECT_EQ(owner.fence(), fence);
      EXPECT_EQ(network->calls(Call::acquire), 1);
    }
    EXPECT_TRUE(owner.valid());
    EXPECT_FALSE(other.tryLock("k"));
    EXPECT_EQ(network->calls(Call::release), 0);
  }
  EXPECT_EQ(owner.levels(), 0U);
  EXPECT_FALSE(owner.valid());
  EXPECT_TRUE(other.tryLock("k"));
}

TEST_F(ReentrantLockTest, AnotherOwnerIsKeptOutAlsoOnTheSameThread) {
  ReentrantLock another(manager, "k");
  owner.lock();
  EXPECT_FALSE(another.try_lock());
  EXPECT_EQ(another.levels(), 0U);
  owner.unlock();
  EXPECT_TRUE(another.try_lock());
  another.unlock();
}

TEST_F(ReentrantLockTest, UnlockingMoreOftenThanLockingIsAnError) {
  EXPECT_THROW(owner.unlock(), std::logic_error);
  owner.lock();
  owner.unlock();
  EXPECT_THROW(owner.unlock(), std::logic_error);
  EXPECT_TRUE(other.tryLock("k"));
}

TEST_F(ReentrantLockTest, ABadKeyAndBadOptionsAreRefusedBeforeTheFirstCall) {
  EXPECT_THROW(ReentrantLock(manager, ""), std::invalid_argument);
  EXPECT_THROW(ReentrantLock(manager, "k", {.waitFor = -5ms}), std::invalid_argument);
  EXPECT_THROW(ReentrantLock(manager, "k", {.ttl = 1ms}), std::invalid_argument);
}

TEST_F(ReentrantLockTest, ALossIsThatOfAllLevels) {
  owner.lock();
  owner.lock();
  const std::stop_token lost = owner.lost();
  ASSERT_TRUE(store->breakLock("k", clock->now()));
  clock->advance(10s);  // the renewal finds it
  while (!lost.stop_requested()) std::this_thread::yield();
  EXPECT_FALSE(owner.valid());
  EXPECT_THROW(owner.lock(), LockLost);
  EXPECT_EQ(owner.levels(), 2U);
  owner.unlock();
  EXPECT_THROW((void)owner.try_lock(), LockLost) << "one level still works under the lost lock";
  owner.unlock();
  EXPECT_TRUE(owner.try_lock());
  owner.unlock();
}

TEST_F(ReentrantLockTest, ThreadsOfOneOwnerShareTheLeaseAndOneOfThemTakesIt) {
  network->hang(Call::acquire);
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.push_back(std::async(std::launch::async, [&] { owner.lock(); }));
  }
  network->awaitHanging();
  EXPECT_FALSE(owner.try_lock()) << "does not wait for the thread that is ahead";
  network->resume();
  for (auto& thread : threads) thread.get();
  EXPECT_EQ(owner.levels(), 4U);
  EXPECT_EQ(network->calls(Call::acquire), 1);
  for (int level = 0; level < 4; ++level) owner.unlock();
  EXPECT_TRUE(other.tryLock("k"));
}

TEST_F(ReentrantLockTest, WhenTheFirstOneFailsTheNextOneTries) {
  network->hang(Call::acquire);
  network->fail(Call::acquire, {Fault::config});
  std::atomic<int> failed{0};
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.push_back(std::async(std::launch::async, [&] {
      try {
        owner.lock();
      } catch (const ConfigError&) {
        ++failed;
      }
    }));
  }
  network->awaitHanging();
  network->resume();
  for (auto& thread : threads) thread.get();
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(owner.levels(), 1U);
}

TEST_F(ReentrantLockTest, AForkedChildHoldsNothing) {
  owner.lock();
  ASSERT_TRUE(clock->awaitWaiters(managerThreads));  // none of them is inside malloc, say, during fork()
  const pid_t child = fork();
  if (child == 0) {
    bool refused = false;
    try {
      owner.lock();
    } catch (const ForkedError&) {
      refused = true;
    }
    const bool right = refused && !owner.valid() && owner.levels() == 0;
    owner.unlock();
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(owner.valid());
  owner.unlock();
}

TEST_F(ReentrantLockTest, AForkedChildEndsItThoughThreadsOfTheParentWaitForIt) {
  auto shared = std::make_unique<ReentrantLock>(manager, "shared");
  network->hang(Call::acquire);
  auto first = std::async(std::launch::async, [&] { shared->lock(); });
  network->awaitHanging();
  auto second = std::async(std::launch::async, [&] { shared->lock(); });
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 1));
  EXPECT_EQ(shared->levels(), 0U) << "and so the second one has let go of the mutex: it waits";
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    shared.reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  network->resume();
  first.get();
  second.get();
}

}  // namespace
}  // namespace lockkeeper::test
