#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "lockkeeper/permit/upgradeable_lock.h"
#include "lockkeeper/testing/contract/manager_fixture.h"

// Readers that become the writer.

namespace lockkeeper::testing {

TEST_P(ManagerContract, NobodyReadsOrWritesBesideAWriterThatWasAReader) {
  if (!GetParam().permits) GTEST_SKIP() << "the driver has no Permits";
  constexpr int rounds = 12;
  // Both numbers are the same, except while somebody writes.
  std::array<std::atomic<int>, 2> numbers{};
  std::atomic<int> mistakes = 0;
  const auto write = [&] {
    if (numbers[0] != numbers[1]) ++mistakes;
    ++numbers[0];
    std::this_thread::yield();
    ++numbers[1];
  };
  // Two upgrade, two read and two write: one of each pair by each manager.
  std::vector<std::jthread> threads;
  for (int number = 0; number < 6; ++number) {
    threads.emplace_back([&, number] {
      LockManager& own = number % 2 == 0 ? manager : other;
      for (int round = 0; round < rounds; ++round) {
        if (number < 2) {
          auto held = UpgradeableLock::lock(own, key);
          const int seen = numbers[0];
          held.upgrade();
          if (numbers[0] != seen) ++mistakes;
          write();
          held.downgrade();
          if (numbers[0] != seen + 1) ++mistakes;
        } else if (number < 4) {
          const Lock held = own.lockShared(key);
          const int seen = numbers[0];
          std::this_thread::yield();
          if (numbers[1] != seen) ++mistakes;
        } else {
          const Lock held = own.lock(key);
          write();
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(mistakes, 0);
  EXPECT_EQ(numbers[0], 4 * rounds);
  EXPECT_TRUE(eventually([&] { return !driver->holder(key, now() + std::chrono::seconds{10}); }));
}

TEST_P(ManagerContract, AnUpgradeIsInFrontOfAllWhoWaitAndHasANewFence) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << "the driver has no Permits, or the factory cannot tell how many wait";
  const auto queued = [&](std::size_t count) {
    return eventually([&] { return GetParam().queued() == count; });
  };
  auto held = UpgradeableLock::lock(manager, key);
  const auto before = held.fence();
  Lock reader = other.lockShared(key);
  auto writing = std::async(std::launch::async, [&] { return other.lock(key); });
  ASSERT_TRUE(queued(1));
  auto upgrading = std::async(std::launch::async, [&] { return held.tryUpgrade(std::chrono::seconds{20}); });
  ASSERT_TRUE(queued(2));
  EXPECT_FALSE(other.tryLockShared(key));
  EXPECT_EQ(reader.release(), ReleaseResult::released);
  EXPECT_TRUE(upgrading.get());
  const auto asWriter = held.fence();
  EXPECT_TRUE(queued(1));
  EXPECT_EQ(held.release(), ReleaseResult::released);
  const Lock next = writing.get();
  EXPECT_TRUE(next.valid());
  if (GetParam().fence == FencePromise::none) return;
  ASSERT_TRUE(before && asWriter);
  EXPECT_GT(*asWriter, *before);
  EXPECT_GT(next.fence(), asWriter);
}

}  // namespace lockkeeper::testing
