#include "lockkeeper/mutex.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <shared_mutex>
#include <thread>

#include "manager_fixture.h"

namespace lockkeeper::test {
namespace {

class MutexTest : public ManagerFixture {
 protected:
  Mutex mutex{manager, "order"};
};

TEST_F(MutexTest, WorksWithTheStandardGuards) {
  {
    std::unique_lock held(mutex);
    EXPECT_TRUE(held.owns_lock());
    EXPECT_FALSE(other.tryLock("order"));
  }
  Mutex second(manager, "another");
  {
    std::scoped_lock both(mutex, second);
    EXPECT_FALSE(other.tryLock("order"));
    EXPECT_FALSE(other.tryLock("another"));
  }
  std::unique_lock tried(mutex, std::try_to_lock);
  EXPECT_TRUE(tried.owns_lock());
  tried.unlock();
  std::unique_lock timed(mutex, 10ms);
  EXPECT_TRUE(timed.owns_lock());
  timed.unlock();
  std::unique_lock endless(mutex, std::chrono::hours::max());
  EXPECT_TRUE(endless.owns_lock());
  endless.unlock();
  std::unique_lock until(mutex, std::chrono::steady_clock::now() + 10ms);
  EXPECT_TRUE(until.owns_lock());
}

TEST_F(MutexTest, ATimeThatIsOverIsOneAttemptHoweverLongAgoItWas) {
  const auto held = other.lock("order");
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::sys_time<std::chrono::milliseconds>::min()));
  EXPECT_FALSE(mutex.try_lock_for(std::chrono::hours::min()));
  EXPECT_FALSE(mutex.try_lock_for(-1ms));
  EXPECT_EQ(network->calls(Call::acquire), 4);
}

TEST_F(MutexTest, NoLengthIsTooLong) {
  Mutex second(manager, "another");
  EXPECT_TRUE(mutex.try_lock_until(std::chrono::steady_clock::time_point::max()));
  EXPECT_TRUE(second.try_lock_for(std::chrono::years::max()));
}

TEST_F(MutexTest, ExcludesTheThreadsThatShareIt) {
  int counter = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        const std::lock_guard held(mutex);
        ++counter;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 800);
}

TEST_F(MutexTest, TryLockForGivesUpInTime) {
  const auto held = other.lock("order");
  const Instant start = clock->now();
  auto waiting = std::async(std::launch::async, [&] { return mutex.try_lock_for(3ms); });
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 1));
  while (waiting.wait_for(0s) != std::future_status::ready) {
    if (clock->awaitWaiters(2 * managerThreads + 1, 10ms)) clock->advance(1ms);
  }
  EXPECT_FALSE(waiting.get());
  EXPECT_GE(clock->now() - start, 3ms);
}

TEST_F(MutexTest, UnlockAfterALossDisturbsNobody) {
  mutex.lock();
  EXPECT_FALSE(mutex.lost().stop_requested());
  const auto lost = mutex.lost();
  store->breakLock("order", {});
  const auto next = other.lock("order");
  mutex.unlock();
  EXPECT_TRUE(next.valid());
  EXPECT_FALSE(other.tryLock("order"));
  EXPECT_FALSE(mutex.lost().stop_possible());
}

TEST_F(MutexTest, AnotherThreadThanTheLockersMayUnlockIt) {
  for (int turn = 0; turn < 2; ++turn) {
    mutex.lock();
    std::thread([&] {
      EXPECT_TRUE(mutex.lost().stop_possible());
      mutex.unlock();
    }).join();
    EXPECT_TRUE(other.tryLock("order"));
    mutex.unlock();  // there is nothing to unlock
  }
}

TEST_F(MutexTest, AfterALossEachUnlocksItsOwnAndAThreadWithoutOneTheFirst) {
  LockManager hearsOfLosses(store, options(seed + 2));
  Mutex lossy(hearsOfLosses, "order");
  lossy.lock();
  store->breakLock("order", {});
  listener->await("lost: not the owner any more order");
  std::promise<void> locked, over;
  std::thread next([&] {
    lossy.lock();
    locked.set_value();
    over.get_future().wait();
  });
  locked.get_future().wait();
  EXPECT_TRUE(lossy.lost().stop_requested()) << "that of the calling thread";
  std::thread([&] {
    EXPECT_TRUE(lossy.lost().stop_requested()) << "that of the one taken first";
    lossy.unlock();
  }).join();
  EXPECT_FALSE(other.tryLock("order")) << "that one was lost";
  EXPECT_FALSE(lossy.lost().stop_requested());
  lossy.unlock();
  EXPECT_TRUE(other.tryLock("order"));
  over.set_value();
  next.join();
}

TEST_F(MutexTest, LockEndsWhenItsManagerIsStopped) {
  const auto held = other.lock("order");
  auto waiting = std::async(std::launch::async, [&] { mutex.lock(); });
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 1));
  manager.stop();
  EXPECT_THROW(waiting.get(), Cancelled);
  EXPECT_FALSE(mutex.try_lock());
}

TEST_F(MutexTest, AForkedChildUnlocksItWithoutWaitingForThreadsThatAreNotThere) {
  mutex.lock();
  ASSERT_TRUE(clock->awaitWaiters(managerThreads));  // none of them is inside malloc, say, during fork()
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {  // inside the mutex much of the time
    threads.emplace_back([&] {
      while (!over) EXPECT_TRUE(mutex.lost().stop_possible());
    });
  }
  for (int i = 0; i < 40; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      mutex.unlock();
      _exit(mutex.lost().stop_possible() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "at fork " << i;
    if (status != 0) break;
  }
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(other.isLocked("order")) << "the parent holds it";
  mutex.unlock();
}

}  // namespace
}  // namespace lockkeeper::test
