#pragma once

/// @file
/// What LockManager must keep on a driver, as a GoogleTest suite: mutual exclusion, bounded waits, renewal
/// and loss from end to end. Instantiate ManagerContract as driver_contract.h says for DriverContract, for
/// stores on the machine's own clock.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/base/key.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mutex.h"
#include "lockkeeper/permit/upgradeable_lock.h"
#include "lockkeeper/testing/contract/kinds/upgrade_tests.h"
#include "lockkeeper/testing/contract/manager_fixture.h"

#include <gtest/gtest.h>

namespace lockkeeper::testing {

TEST_P(ManagerContract, ManyThreadsOfTwoManagersNeverLoseACount) {
  constexpr int threadsOfEach = 4;
  constexpr int rounds = 40;
  // Read, then written: atomic only so that a broken lock shows as a lost count and not as undefined
  // behaviour.
  std::atomic<int> counter{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2 * threadsOfEach; ++i) {
      threads.emplace_back([&, mine = i % 2 == 0 ? &manager : &other] {
        for (int round = 0; round < rounds; ++round) {
          Lock lock = mine->lock(key, {.waitFor = std::chrono::minutes{2}});
          const int seen = counter.load();
          std::this_thread::yield();
          counter.store(seen + 1);
        }
      });
    }
  }
  EXPECT_EQ(counter, 2 * threadsOfEach * rounds);
}

TEST_P(ManagerContract, EachHolderHasAHigherFenceThanTheOneBeforeWhicheverProcessItIsIn) {
  if (GetParam().fence == FencePromise::none) GTEST_SKIP() << "the driver promises no fences";
  constexpr int threadsOfEach = 4;
  constexpr int rounds = 25;
  std::atomic<Fence> last{0};
  std::atomic<int> faults{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2 * threadsOfEach; ++i) {
      threads.emplace_back([&, mine = i % 2 == 0 ? &manager : &other] {
        for (int round = 0; round < rounds; ++round) {
          const Lock lock = mine->lock(key, {.waitFor = std::chrono::minutes{2}});
          if (!lock.valid() || last.exchange(*lock.fence()) >= *lock.fence()) ++faults;
        }
      });
    }
  }
  EXPECT_EQ(faults, 0);
}

TEST_P(ManagerContract, AProcessWhoseCallersNeverPauseLetsOthersIn) {
  std::atomic<bool> over{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!over) (void)manager.tryLock(key, {.waitFor = std::chrono::minutes{2}});
    });
  }
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(other.tryLock(key, {.waitFor = std::chrono::seconds{30}})) << round;
  }
  over = true;
}

TEST_P(ManagerContract, AHeldLockIsRefusedToOthersUntilItIsReleased) {
  Lock lock = manager.lock(key);
  EXPECT_TRUE(lock.valid());
  EXPECT_EQ(lock.key(), key);
  EXPECT_EQ(lock.fence().has_value(), GetParam().fence != FencePromise::none);
  EXPECT_FALSE(other.tryLock(key));
  EXPECT_FALSE(manager.tryLock(key)) << "locks are not re-entrant";
  EXPECT_EQ(lock.release(), ReleaseResult::released);
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.release(), ReleaseResult::notHeld);
  EXPECT_TRUE(other.tryLock(key));
}

TEST_P(ManagerContract, TheEndOfTheHandleFreesTheKey) {
  for (int round = 0; round < 3; ++round) {
    { Lock lock = manager.lock(key); }
    EXPECT_TRUE(manager.tryLock(key)) << "its own manager finds it free at once";
    EXPECT_TRUE(other.tryLock(key, {.waitFor = std::chrono::minutes{1}}));
    ASSERT_TRUE(manager.tryLock(key, {.waitFor = std::chrono::minutes{1}}));
  }
}

TEST_P(ManagerContract, WaitsAsLongAsItWasToldAndNoShorter) {
  Lock lock = manager.lock(key);
  const Instant start = now();
  EXPECT_THROW((void)other.lock(key, {.waitFor = ms{120}}), LockTimeout);
  EXPECT_GE(now() - start, ms{120});
  EXPECT_FALSE(manager.tryLock(key, {.waitFor = ms{120}}));
  EXPECT_TRUE(lock.valid());
}

TEST_P(ManagerContract, AWaiterGetsTheLockWhenTheHolderReleases) {
  Lock lock = manager.lock(key);
  std::atomic<bool> got{false};
  std::jthread waiter([&] {
    Lock mine = other.lock(key, {.waitFor = std::chrono::minutes{1}});
    got = mine.valid();
  });
  std::this_thread::sleep_for(ms{20});
  EXPECT_FALSE(got);
  EXPECT_EQ(lock.release(), ReleaseResult::released);
  waiter.join();
  EXPECT_TRUE(got);
}

TEST_P(ManagerContract, AWaiterLeavesWhenToldToStop) {
  Lock lock = manager.lock(key);
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(ms{20});
    stop.request_stop();
  });
  EXPECT_THROW((void)other.lock(key, {.waitFor = std::chrono::minutes{2}, .stop = stop.get_token()}),
               Cancelled);
}

TEST_P(ManagerContract, RenewsALockForAsLongAsItIsHeld) {
  constexpr ms ttl{3000};
  Lock lock = manager.lock(key, {.ttl = ttl});
  const Instant later = now() + ttl + ttl / 2;
  while (now() < later) {
    ASSERT_TRUE(lock.valid());
    ASSERT_FALSE(other.tryLock(key));
    std::this_thread::sleep_for(ms{50});
  }
  EXPECT_FALSE(lock.lost().stop_requested());
  EXPECT_EQ(lock.release(), ReleaseResult::released);
}

TEST_P(ManagerContract, ALockThatIsNotRenewedIsLostBeforeAnotherCanHaveIt) {
  const ms ttl = 2 * GetParam().shortTtl;
  Lock lock = manager.lock(key, {.ttl = ttl, .renew = Renew::manual});
  Lock next = other.lock(key, {.waitFor = std::chrono::minutes{1}});
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.remaining(), std::chrono::nanoseconds{0});
  EXPECT_TRUE(eventually([&] { return lock.lost().stop_requested(); }));
  EXPECT_THROW(lock.renew(), LockLost);
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(next.valid());
  if (GetParam().fence != FencePromise::none) {
    EXPECT_GT(*next.fence(), *lock.fence());
  }
}

TEST_P(ManagerContract, AReaderThatIsNotRenewedIsLostAndCountsNoMore) {
  if (!GetParam().permits) GTEST_SKIP() << "the driver has no Permits";
  const ms ttl = 2 * GetParam().shortTtl;
  Lock stands = manager.lockShared(key, {.ttl = ttl, .renew = Renew::manual});
  Lock reads = manager.lockShared(key);
  EXPECT_FALSE(other.tryLock(key));
  EXPECT_TRUE(eventually([&] { return stands.lost().stop_requested(); }));
  EXPECT_FALSE(other.tryLock(key)) << "somebody else reads";
  EXPECT_EQ(reads.release(), ReleaseResult::released);
  const Lock writes = other.lock(key, {.waitFor = std::chrono::minutes{1}});
  EXPECT_FALSE(stands.valid());
  EXPECT_THROW(stands.renew(), LockLost);
  EXPECT_EQ(stands.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(writes.valid());
  if (GetParam().fence != FencePromise::none) {
    EXPECT_GT(*writes.fence(), *stands.fence());
  }
}

TEST_P(ManagerContract, AWriterHasItsTurnAlthoughThereAreAlwaysReaders) {
  if (!GetParam().permits) GTEST_SKIP() << "the driver has no Permits";
  const LockOptions patient{.waitFor = std::chrono::minutes{1}};
  std::atomic<int> reads = 0;
  std::atomic<bool> over = false;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 6; ++i) {
    readers.emplace_back([&, mine = i % 2 == 0 ? &manager : &other] {
      for (; !over; ++reads) {
        const Lock lock = mine->lockShared(key, patient);
        std::this_thread::sleep_for(ms{20});
      }
    });
  }
  const auto othersRead = [&] {
    return eventually([&, before = reads.load()] { return reads > before + 10; });
  };
  EXPECT_TRUE(othersRead());
  EXPECT_TRUE(other.tryLock(key, {.waitFor = std::chrono::seconds{20}})) << "the writer starves";
  EXPECT_TRUE(othersRead());
  {
    auto reader = UpgradeableLock::lock(other, key, patient);
    EXPECT_TRUE(othersRead());
    EXPECT_TRUE(reader.tryUpgrade(std::chrono::seconds{20})) << "the upgrade starves";
  }
  EXPECT_TRUE(othersRead());
  over = true;
}

TEST_P(ManagerContract, AHolderLearnsThatItsLockWasBroken) {
  auto* breakable = capability<Breakable>(*driver);
  if (breakable == nullptr) GTEST_SKIP() << "the driver is not Breakable";
  Lock lock = manager.lock(key, {.ttl = ms{900}});
  ASSERT_TRUE(breakable->breakLock(key, now() + std::chrono::seconds{10}));
  EXPECT_TRUE(eventually([&] { return lock.lost().stop_requested(); }));
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);
}

TEST_P(ManagerContract, NamespacesKeepApplicationsApart) {
  LockManager shop{driver, options("shop", "")};
  LockManager bank{GetParam().open(), options("bank", "")};
  Lock lock = shop.lock(key);
  EXPECT_TRUE(bank.tryLock(key));
  EXPECT_TRUE(other.tryLock(key));
  EXPECT_FALSE(other.tryLock("shop:" + key));
}

TEST_P(ManagerContract, ShowsTheHolderByItsLabel) {
  LockManager named{driver, options("", "worker:7")};
  EXPECT_FALSE(other.holder(key));
  Lock lock = named.lock(key);
  const auto holder = other.holder(key);
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->owner, "worker:7");
}

TEST_P(ManagerContract, RefusesKeysThatNoDriverTakes) {
  EXPECT_THROW((void)manager.tryLock(""), std::invalid_argument);
  EXPECT_THROW((void)manager.tryLock(std::string(maxKeyBytes + 1, 'k')), std::invalid_argument);
  EXPECT_THROW((void)manager.tryLock(key + std::string(reservedMark) + "fence"), std::invalid_argument);
  EXPECT_TRUE(manager.tryLock(std::string(maxKeyBytes, 'k')));
}

TEST_P(ManagerContract, ServesStandardLockCode) {
  Mutex mutex{manager, key};
  Mutex second{other, key + "/second"};
  {
    std::scoped_lock both(mutex, second);
    EXPECT_FALSE(other.tryLock(key));
    EXPECT_FALSE(manager.tryLock(key + "/second"));
  }
  std::unique_lock<Mutex> timed(mutex, std::chrono::seconds{5});
  EXPECT_TRUE(timed.owns_lock());
}

TEST_P(ManagerContract, LocksSeveralKeysOrNone) {
  const std::string first = key + "/1";
  const std::string second = key + "/2";
  const std::string third = key + "/3";
  LockSet set = manager.lockAll({second, first, second});
  EXPECT_TRUE(set.valid());
  ASSERT_EQ(set.locks().size(), 2U);
  EXPECT_EQ(set.locks().front().key(), first);
  EXPECT_FALSE(other.tryLock(first));
  EXPECT_FALSE(other.tryLock(second));
  EXPECT_FALSE(other.tryLockAll({first, third}));
  EXPECT_FALSE(other.tryLockAll({third, second}));
  EXPECT_TRUE(manager.tryLock(third, {.waitFor = std::chrono::minutes{1}})) << "it was given back";
  EXPECT_EQ(set.release(), ReleaseResult::released);
  EXPECT_FALSE(set.valid());
  EXPECT_TRUE(other.tryLockAll({first, second, third}, {.waitFor = std::chrono::minutes{1}}));
}

TEST_P(ManagerContract, ManyThreadsWithSeveralKeysEachNeverLoseACountAndAllComeToAnEnd) {
  constexpr int threadsOfEach = 3;
  constexpr int rounds = 6;
  constexpr std::size_t keyCount = 4;
  std::vector<std::string> keys;
  for (std::size_t index = 0; index < keyCount; ++index) keys.push_back(key + "/" + std::to_string(index));
  std::array<std::atomic<int>, keyCount> counters{};
  std::array<std::atomic<int>, keyCount> expected{};
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 2 * threadsOfEach; ++thread) {
      threads.emplace_back([&, thread, mine = thread % 2 == 0 ? &manager : &other] {
        std::minstd_rand random(thread + 1);
        for (int round = 0; round < rounds; ++round) {
          std::vector<std::size_t> chosen(keyCount);
          std::iota(chosen.begin(), chosen.end(), std::size_t{0});
          std::shuffle(chosen.begin(), chosen.end(), random);
          chosen.resize(1 + random() % keyCount);
          std::vector<std::string> names;
          for (const std::size_t index : chosen) names.push_back(keys[index]);
          const LockSet set = mine->lockAll(names, {.waitFor = std::chrono::minutes{1}});
          for (const std::size_t index : chosen) {
            const int seen = counters[index].load();
            std::this_thread::yield();
            counters[index].store(seen + 1);
            ++expected[index];
          }
        }
      });
    }
  }
  for (std::size_t index = 0; index < keyCount; ++index) EXPECT_EQ(counters[index], expected[index]) << index;
  EXPECT_TRUE(other.tryLockAll(keys, {.waitFor = std::chrono::minutes{1}})) << "nothing is left behind";
}

}  // namespace lockkeeper::testing
