#include "lockkeeper/permit/shared_mutex.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "lock/manager_fixture.h"

namespace lockkeeper::test {
namespace {

class SharedMutexTest : public ManagerFixture {
 protected:
  LockManager direct{store, options(seed + 2)};  // with the store's queue
  SharedMutex prices{direct, "prices"};
  SharedMutex elsewhere{other, "prices"};
};

TEST_F(SharedMutexTest, WorksWithTheStandardGuards) {
  {
    const std::shared_lock reading(prices);
    std::shared_lock beside(elsewhere, std::try_to_lock);
    EXPECT_TRUE(beside.owns_lock());
    EXPECT_FALSE(elsewhere.try_lock());
    EXPECT_FALSE(other.tryLock("prices"));
  }
  {
    const std::unique_lock writing(prices);
    EXPECT_FALSE(elsewhere.try_lock_shared());
    EXPECT_FALSE(elsewhere.try_lock());
    EXPECT_FALSE(other.tryLockShared("prices"));
  }
  std::shared_lock timed(prices, 10ms);
  EXPECT_TRUE(timed.owns_lock());
  timed.unlock();
  std::shared_lock until(prices, std::chrono::steady_clock::now() + 10ms);
  EXPECT_TRUE(until.owns_lock());
  until.unlock();
  std::unique_lock writer(prices, 10ms);
  EXPECT_TRUE(writer.owns_lock());
  writer.unlock();
  EXPECT_FALSE(store->holder("prices", {}));
}

TEST_F(SharedMutexTest, ReadersOfOneProcessReadTogetherAndWritersAlone) {
  std::atomic<int> readers = 0;
  std::atomic<int> writers = 0;
  std::atomic<int> mistakes = 0;
  std::vector<std::jthread> threads;
  for (int number = 0; number < 6; ++number) {
    threads.emplace_back([&, writes = number < 2] {
      for (int round = 0; round < 100; ++round) {
        if (writes) {
          const std::lock_guard held(prices);
          if (++writers != 1 || readers != 0) ++mistakes;
          --writers;
        } else {
          const std::shared_lock held(prices);
          ++readers;
          if (writers != 0) ++mistakes;
          --readers;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(mistakes, 0);
}

TEST_F(SharedMutexTest, AWaitingWriterIsNotPassedOverByReaders) {
  std::shared_lock reading(elsewhere);
  auto writing = std::async(std::launch::async, [&] {
    prices.lock();
    const bool hasSignal = prices.lost().stop_possible();
    prices.unlock();
    return hasSignal;
  });
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 1));
  EXPECT_FALSE(elsewhere.try_lock_shared());
  reading.unlock();
  EXPECT_TRUE(writing.get());
  EXPECT_TRUE(elsewhere.try_lock_shared());
  elsewhere.unlock_shared();
}

TEST_F(SharedMutexTest, AReaderIsToldOfItsLossAndOthersReadOn) {
  prices.lock_shared();
  const auto lost = prices.lost();
  EXPECT_FALSE(lost.stop_requested());
  clock->advance(1s);  // so that its lease ends first
  const auto beside = other.lockShared("prices", {.ttl = 1h});
  const auto longest = store->holder("prices", {});
  ASSERT_TRUE(longest);
  ASSERT_TRUE(store->breakLock("prices", {}, &*longest));
  EXPECT_FALSE(beside.valid());
  EXPECT_FALSE(lost.stop_requested());
  ASSERT_TRUE(store->breakLock("prices", {}));
  listener->await("lost: not the owner any more prices", 2);
  EXPECT_TRUE(lost.stop_requested());
  prices.unlock_shared();
}

TEST_F(SharedMutexTest, AReaderIsShownItsOwnLossBesideALaterWriter) {
  prices.lock_shared();
  ASSERT_TRUE(store->breakLock("prices", {}));
  listener->await("lost: not the owner any more prices", 1);
  std::thread([&] { prices.lock(); }).join();
  EXPECT_TRUE(prices.lost().stop_requested());
  prices.unlock();
  prices.unlock_shared();
}

TEST_F(SharedMutexTest, AThreadWithoutAShareEndsNobodyElses) {
  prices.lock_shared();
  std::thread([&] { prices.unlock_shared(); }).join();
  EXPECT_FALSE(elsewhere.try_lock());
  prices.unlock_shared();
  EXPECT_TRUE(elsewhere.try_lock());
  elsewhere.unlock();
}

TEST_F(SharedMutexTest, AReadersFenceRefusesWhatALaterWriterHasWritten) {
  const auto before = other.lock("prices").fence();
  const auto read = other.lockShared("prices").fence();
  const auto after = other.lock("prices").fence();
  ASSERT_TRUE(before && read && after);
  EXPECT_GE(*read, *before);
  EXPECT_LT(*read, *after);
}

TEST_F(SharedMutexTest, AShareIsNotHandedOnInsideTheProcess) {
  auto writer = direct.lock("prices");
  auto readers = std::async(std::launch::async, [&] { return direct.lockShared("prices"); });
  auto more = std::async(std::launch::async, [&] { return direct.lockShared("prices"); });
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 2)) << "each waits in the store";
  writer.release();
  const Lock first = readers.get();
  const Lock second = more.get();
  EXPECT_TRUE(first.valid() && second.valid());
  EXPECT_EQ(direct.shareHolders("prices").size(), 2U);
}

}  // namespace
}  // namespace lockkeeper::test
