// How often a call allocates when others like it have gone before.

#include <gtest/gtest.h>

#include "allocations.h"
#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

class RedisAllocations : public ::testing::Test {
 protected:
  const RedisServer server;
};

TEST_F(RedisAllocations, AFencedPairTakesTwoAtMost) {
  LockManager locks(openRedis(server.port()));
  const auto pair = [&] { EXPECT_EQ(locks.tryLock("order:1")->release(), ReleaseResult::released); };
  EXPECT_LE(testing::allocationsOfEach(pair), 2.0);
}

TEST_F(RedisAllocations, APlainPairTakesTwoAtMost) {
  LockManager locks(openRedis(server.port(), "fence=off"));
  const auto pair = [&] { EXPECT_EQ(locks.tryLock("order:1")->release(), ReleaseResult::released); };
  EXPECT_LE(testing::allocationsOfEach(pair), 2.0);
}

TEST_F(RedisAllocations, APairWithAPostedReleaseTakesFourAtMost) {
  LockManager locks(openRedis(server.port()));
  EXPECT_LE(testing::allocationsOfEach([&] { EXPECT_TRUE(locks.tryLock("order:1")); }), 4.0);
}

}  // namespace
}  // namespace lockkeeper::test
