#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

/// Foreign clients that lock by `SET key token NX PX ttl` and release by comparing and deleting, on the same
/// keys.
class Interoperation : public RedisFaultTest, public ::testing::WithParamInterface<const char*> {
 protected:
  const std::shared_ptr<LockDriver> driver = openRedis(server.port(), GetParam());
};

TEST_P(Interoperation, AForeignLockKeepsUsOut) {
  const Claimant who{};
  ASSERT_EQ(server.command({"SET", who.key, "foreign", "NX", "PX", "60000"}), "OK");
  const AcquireResult result = driver->acquire(who.request());
  ASSERT_FALSE(granted(result));
  EXPECT_FALSE(granted(driver->acquire(who.request(soon(), true)))) << "nor does a resend";
  const auto holder = driver->holder(who.key, soon());
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->owner, "");
  EXPECT_GT(holder->remaining, std::chrono::seconds{50});
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_EQ(server.command({"DEL", who.key}), "1");
  EXPECT_TRUE(granted(driver->acquire(who.request())));
}

TEST_P(Interoperation, OurLockKeepsForeignClientsOut) {
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_EQ(server.command({"SET", who.key, "foreign", "NX", "PX", "60000"}), "(nil)");
  EXPECT_EQ(server.command({"TYPE", who.key}), "string");
  EXPECT_EQ(server.command({"GET", who.key}).find(who.token.hex()), 0U);
  EXPECT_GT(std::stoll(server.command({"PTTL", who.key})), 60000);
  const std::string compareAndDelete =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
  EXPECT_EQ(server.command({"EVAL", compareAndDelete, "1", who.key, "foreign"}), "0");
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(server.command({"SET", who.key, "foreign", "NX", "PX", "60000"}), "OK");
}

TEST_P(Interoperation, AKeyOfAnotherTypeIsSomebodyElses) {
  const Claimant who{};
  ASSERT_EQ(server.command({"RPUSH", who.key, "not a lock"}), "1");
  EXPECT_FALSE(granted(driver->acquire(who.request())));
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::notOwner);
  EXPECT_TRUE(driver->holder(who.key, soon()));
  EXPECT_EQ(server.command({"LLEN", who.key}), "1");
}

TEST_P(Interoperation, AForeignKeyWithoutAnEndIsShownAsSuch) {
  const Claimant who{};
  ASSERT_EQ(server.command({"SET", who.key, "for ever"}), "OK");
  const AcquireResult result = driver->acquire(who.request());
  ASSERT_FALSE(granted(result));
  EXPECT_FALSE(std::get<Busy>(result).retryAfter);
  EXPECT_FALSE(driver->holder(who.key, soon())->remaining);
}

INSTANTIATE_TEST_SUITE_P(Fence, Interoperation, ::testing::Values("fence=on", "fence=off"));

using FenceAfterLoss = RedisFaultTest;

TEST_F(FenceAfterLoss, ARestartWithoutPersistenceDoesNotRepeatFences) {
  Claimant who;
  Fence highest = 0;
  for (int restarts = 0; restarts < 3; ++restarts) {
    for (int grants = 0; grants < 3; ++grants) {
      const auto driver = openRedis(server.port());
      const AcquireResult result = driver->acquire(who.request());
      ASSERT_TRUE(granted(result));
      EXPECT_GT(*std::get<Granted>(result).fence, highest);
      highest = *std::get<Granted>(result).fence;
      ASSERT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
    }
    server.restart();
  }
}

TEST_F(FenceAfterLoss, ALostCounterDoesNotRepeatFences) {
  const Claimant who{};
  const AcquireResult first = direct->acquire(who.request());
  ASSERT_TRUE(granted(first));
  server.command({"FLUSHALL"});
  const Claimant next{.key = who.key};
  const AcquireResult second = direct->acquire(next.request());
  ASSERT_TRUE(granted(second));
  EXPECT_GT(*std::get<Granted>(second).fence, *std::get<Granted>(first).fence);
}

TEST(FenceCounter, StaysAsLongAsIsAskedForAndTheNextOneBeginsAboveIt) {
  const RedisServer server;
  const auto driver = openRedis(server.port(), "fenceKept=1s");
  const Claimant who{};
  const AcquireResult first = driver->acquire(who.request());
  ASSERT_TRUE(granted(first));
  const std::string counter = "{" + who.key + "}:lockkeeper:fence";
  EXPECT_EQ(server.command({"EXISTS", counter}), "1");
  EXPECT_TRUE(waitUntil([&] { return server.command({"EXISTS", counter}) == "0"; }));
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  const AcquireResult second = driver->acquire(who.request());
  ASSERT_TRUE(granted(second));
  EXPECT_GT(*std::get<Granted>(second).fence, *std::get<Granted>(first).fence);
}

TEST(ForeignFenceCounter, HidesNoLock) {
  const RedisServer server;
  const auto driver = openRedis(server.port());
  const Claimant one{};
  const Claimant two{};
  ASSERT_TRUE(granted(driver->acquire(one.request())));
  ASSERT_TRUE(granted(driver->acquire(two.request())));
  server.command({"DEL", "{" + one.key + "}:lockkeeper:fence"});
  server.command({"RPUSH", "{" + one.key + "}:lockkeeper:fence", "x"});
  std::size_t seen = 0;
  capability<Browsable>(*driver)->list(
      "", [&](std::string_view, const Holder& holder) { return ++seen, holder.owner == "test:1"; }, soon());
  EXPECT_EQ(seen, 2U);
  EXPECT_EQ(driver->holder(one.key, soon())->fence, std::nullopt);
  EXPECT_TRUE(driver->holder(two.key, soon())->fence);
}

}  // namespace
}  // namespace lockkeeper::test
