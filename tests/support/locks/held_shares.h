#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/permit/semaphore.h"

namespace lockkeeper::test {

/// All five permits of the semaphore "s", by three holders, and a share of the lock "k". They are held while
/// their store restarts with all its data.
class HeldShares {
 public:
  HeldShares(LockManager& manager, const LockOptions& options)
      : semaphore(manager, "s", 5, options), reader(manager.lockShared("k", options)), options_(options) {
    for (const std::uint32_t permits : {2U, 1U, 2U}) held.push_back(semaphore.acquire(permits));
    fence_ = *held.back().fence();
  }

  /// `other` finds all permits taken, and the lock read.
  void expectTaken(LockManager& other) const {
    Semaphore others(other, "s", 5, options_);
    EXPECT_FALSE(others.tryAcquire(1, noWait)) << "all five are taken";
    EXPECT_FALSE(other.tryLock("k", {.waitFor = noWait})) << "somebody reads";
    EXPECT_EQ(others.holders().size(), 3U);
  }

  /// `other` gets as many permits as are given back, and no more; fences go on.
  void expectExactCount(LockManager& other) {
    Semaphore others(other, "s", 5, options_);
    EXPECT_EQ(held.front().release(), ReleaseResult::released);
    EXPECT_FALSE(others.tryAcquire(3, noWait));
    const auto next = others.tryAcquire(2, noWait);
    ASSERT_TRUE(next) << "as many as were given back";
    EXPECT_GT(*next->fence(), fence_);
    EXPECT_EQ(reader.release(), ReleaseResult::released);
    EXPECT_TRUE(other.tryLock("k"));
  }

  Semaphore semaphore;
  Lock reader;
  std::vector<Lock> held{};  ///< Of the semaphore.

 private:
  static constexpr std::chrono::milliseconds noWait{0};

  const LockOptions options_;
  Fence fence_ = 0;
};

}  // namespace lockkeeper::test
