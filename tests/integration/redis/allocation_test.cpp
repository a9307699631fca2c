// How often a call allocates when others like it have gone before.

#include <gtest/gtest.h>

#include <string>

#include "allocations.h"
#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

constexpr int pairs = 1000;

/// Allocations of this thread for each of `pairs` calls.
template <class Pair>
double allocationsOf(Pair&& pair) {
  for (int i = 0; i < 100; ++i) pair();
  const std::size_t before = testing::allocationsOfThisThread();
  for (int i = 0; i < pairs; ++i) pair();
  return static_cast<double>(testing::allocationsOfThisThread() - before) / pairs;
}

class RedisAllocations : public ::testing::Test {
 protected:
  const RedisServer server;
};

TEST_F(RedisAllocations, AFencedPairTakesFourAtMost) {
  LockManager locks(openRedis(server.port()));
  EXPECT_LE(allocationsOf([&] { EXPECT_EQ(locks.tryLock("order:1")->release(), ReleaseResult::released); }),
            4.0);
}

TEST_F(RedisAllocations, APlainPairTakesFourAtMost) {
  LockManager locks(openRedis(server.port(), "fence=off"));
  EXPECT_LE(allocationsOf([&] { EXPECT_EQ(locks.tryLock("order:1")->release(), ReleaseResult::released); }),
            4.0);
}

TEST_F(RedisAllocations, APostedReleaseTakesTwoMore) {
  LockManager locks(openRedis(server.port()));
  EXPECT_LE(allocationsOf([&] { EXPECT_TRUE(locks.tryLock("order:1")); }), 6.0);
}

}  // namespace
}  // namespace lockkeeper::test
