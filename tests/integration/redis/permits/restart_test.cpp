// What becomes of shares when their server restarts.

#include "held_shares.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/permit/semaphore.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

const LockOptions asLongAsWeLike{.ttl = longTtl, .waitFor = 20s};

TEST(SharesOverARestart, WithAnAppendOnlyFileAreKeptAndCounted) {
  RedisServer server({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
  LockManager manager(openRedis(server.port()));
  HeldShares shares(manager, asLongAsWeLike);
  server.restart();

  LockManager other(openRedis(server.port()));
  shares.expectTaken(other);
  for (Lock& each : shares.held) {
    EXPECT_TRUE(waitUntil([&] {
      try {
        each.renew();
        return true;
      } catch (const Error&) {
        return false;  // the connection is made again
      }
    }));
    EXPECT_TRUE(each.valid());
  }
  shares.expectExactCount(other);
}

TEST(SharesOverARestart, WithoutPersistenceAreGoneAndThatIsToldAtOnce) {
  RedisServer server;
  LockManager manager(openRedis(server.port()));
  Semaphore semaphore(manager, "s", 3, asLongAsWeLike);
  const Lock reader = manager.lockShared("k", asLongAsWeLike);
  const Lock one = semaphore.acquire(1);
  const Lock last = semaphore.acquire(2);
  const Lock exclusive = manager.lock("w", asLongAsWeLike);
  server.restart();

  LockManager other(openRedis(server.port()));
  Semaphore others(other, "s", 3, asLongAsWeLike);
  // Any call finds that the server has restarted. It is not sent twice.
  EXPECT_TRUE(waitUntil([&] {
    try {
      (void)manager.holder("another");
      return true;
    } catch (const Error&) {
      return false;
    }
  }));
  for (const Lock* each : {&reader, &one, &last, &exclusive}) {
    EXPECT_TRUE(waitUntil([&] { return each->lost().stop_requested(); })) << "its lease is much longer";
    EXPECT_FALSE(each->valid());
  }
  const auto all = others.tryAcquire(3);
  ASSERT_TRUE(all);
  EXPECT_GT(*all->fence(), *last.fence());
  const auto writer = other.tryLock("w");
  ASSERT_TRUE(writer);
  EXPECT_GT(*writer->fence(), *exclusive.fence());
  EXPECT_FALSE(semaphore.tryAcquire(1, 0s));
}

}  // namespace
}  // namespace lockkeeper::test
