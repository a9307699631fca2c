// How often a call allocates when others like it have gone before, and what becomes of one without memory.

#include <gtest/gtest.h>

#include "allocations.h"
#include "each_allocation.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/testing/fake_random.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class RedisAllocations : public ::testing::Test {
 protected:
  const RedisServer server;
};

TEST_F(RedisAllocations, AFencedPairTakesTwoAtMost) {
  LockManager locks(openRedis(server.port()));
  const auto pair = [&] { EXPECT_EQ(locks.tryLock("order:1")->release(), ReleaseResult::released); };
  EXPECT_LE(allocationsOfEach(pair), 2.0);
}

TEST_F(RedisAllocations, APlainPairTakesTwoAtMost) {
  LockManager locks(openRedis(server.port(), "fence=off"));
  const auto pair = [&] { EXPECT_EQ(locks.tryLock("order:1")->release(), ReleaseResult::released); };
  EXPECT_LE(allocationsOfEach(pair), 2.0);
}

TEST_F(RedisAllocations, APairWithAPostedReleaseTakesFourAtMost) {
  LockManager locks(openRedis(server.port()));
  EXPECT_LE(allocationsOfEach([&] { EXPECT_TRUE(locks.tryLock("order:1")); }), 4.0);
}

// The connection is shared: what one call has no memory for must not end the others, nor what it has asked
// for be answered to somebody else.
TEST_F(RedisAllocations, ACallWithoutMemoryHarmsNoOther) {
  const auto driver = openRedis(server.port());
  testing::FakeRandom random(7);
  const std::string key = "a key that is longer than a short string";
  const Claim claim{key, Token::generate(random), "an owner that is longer than a short string"};
  const auto soon = [] { return systemClock()->now() + 5s; };
  const auto works = [&] {
    const Instant began = systemClock()->now();
    const auto holder = driver->holder(key, soon());
    EXPECT_TRUE(holder && holder->owner == claim.owner);
    EXPECT_LT(systemClock()->now() - began, 2s);
  };
  ASSERT_TRUE(std::holds_alternative<Granted>(driver->acquire({claim, 1h, soon()})));
  const auto renewals = failEachAllocation(
      [&] {
        Renewal renewal{.claim = claim, .ttl = 1h};
        driver->renew({&renewal, 1}, soon());
      },
      works);
  const auto looks = failEachAllocation(
      [&] {
        try {
          (void)driver->holder(key, soon());
        } catch (const OutcomeUnknown&) {
          // There was no memory for the reply.
        }
      },
      works);
  EXPECT_GT(renewals, 3u);
  EXPECT_GT(looks, 3u);
}

TEST_F(RedisAllocations, AConnectionThatThereIsNoMemoryToMakeIsMadeLater) {
  std::shared_ptr<LockDriver> driver;
  const auto look = [&] {
    try {
      (void)driver->holder("order:1", systemClock()->now() + 5s);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const auto allocations = failEachAllocation(
      look, [&] { EXPECT_TRUE(waitUntil(look)); }, [&] { driver = openRedis(server.port()); });
  EXPECT_GT(allocations, 20u);
}

}  // namespace
}  // namespace lockkeeper::test
