// How often a call allocates when others like it have gone before.

#include <gtest/gtest.h>

#include <memory>

#include "allocations.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"

namespace lockkeeper::test {
namespace {

TEST(Allocations, APairInMemoryTakesOne) {
  LockManager locks(std::make_shared<MemoryDriver>());
  const auto pair = [&] { EXPECT_TRUE(locks.tryLock("order:1")); };
  EXPECT_LE(allocationsOfEach(pair), 1.0);
}

TEST(Allocations, ARefusalTakesNone) {
  LockManager locks(std::make_shared<MemoryDriver>());
  const Lock held = locks.lock("order:1");
  EXPECT_EQ(allocationsOfEach([&] { EXPECT_FALSE(locks.tryLock("order:1")); }), 0.0);
}

}  // namespace
}  // namespace lockkeeper::test
