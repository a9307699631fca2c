// What becomes of locks when their server restarts, is replaced by its replica, is full, or its clock is set.

#include <optional>

#include "child_clock.h"
#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// On the keys of redis:// and on those of redis+legacy://.
class ServerLoss : public ::testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<LockDriver> open(const RedisServer& server) {
    return openRedis(server.port(), "", GetParam());
  }
  static bool isLegacy() { return GetParam() == std::string("redis+legacy"); }

  /// Whether the server, as soon as it answers, says that the lock is still held.
  static bool renews(Lock& lock) {
    bool held = false;
    EXPECT_TRUE(waitUntil([&] {
      try {
        lock.renew();
        held = true;
      } catch (const LockLost&) {
      } catch (const Error&) {
        return false;
      }
      return true;
    }));
    return held;
  }

  static void expectHigherFence(const Lock& next, std::optional<Fence> former) {
    EXPECT_EQ(next.fence().has_value(), !isLegacy());
    if (!isLegacy()) {
      EXPECT_GT(*next.fence(), *former);
    }
  }

  const LockOptions asLongAsWeLike{.ttl = longTtl, .waitFor = 20s, .renew = Renew::manual};
};

TEST_P(ServerLoss, ARestartWithAnAppendOnlyFileKeepsItsLocks) {
  RedisServer server({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
  LockManager manager(open(server));
  Lock lock = manager.lock("k", asLongAsWeLike);
  server.restart();
  LockManager other(open(server));
  EXPECT_FALSE(other.tryLock("k"));
  EXPECT_TRUE(renews(lock));
  EXPECT_EQ(lock.release(), ReleaseResult::released);
  expectHigherFence(other.lock("k", asLongAsWeLike), lock.fence());
}

TEST_P(ServerLoss, ARestartWithoutPersistenceLetsASecondHolderInUntilTheFirstOneRenews) {
  RedisServer server;
  LockManager manager(open(server));
  Lock first = manager.lock("k", asLongAsWeLike);
  server.restart();
  LockManager other(open(server));
  const Lock second = other.lock("k", asLongAsWeLike);
  EXPECT_TRUE(first.valid()) << "two holders: what the page of guarantees says";
  expectHigherFence(second, first.fence());
  EXPECT_FALSE(renews(first));
  EXPECT_FALSE(first.valid());
  EXPECT_TRUE(second.valid());
}

TEST_P(ServerLoss, AFailoverToAReplicaThatLaggedLetsASecondHolderIn) {
  const RedisServer master;
  FaultProxy link(master.port());
  const RedisServer replica({.arguments = {"--replicaof", "127.0.0.1", std::to_string(link.port()),
                                           "--repl-diskless-sync-delay", "0"}});
  LockManager manager(open(master));
  ASSERT_EQ(manager.lock("k", asLongAsWeLike).release(), ReleaseResult::released);
  ASSERT_EQ(master.command({"SET", "replicated", "1"}), "OK");
  ASSERT_TRUE(waitUntil([&] { return replica.command({"EXISTS", "replicated"}) == "1"; }));

  link.set({.kind = ProxyFault::Kind::blackhole});
  const Lock first = manager.lock("k", asLongAsWeLike);
  const std::string second = replica.command({"TIME"}).substr(0, 10);
  replica.command({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(waitUntil([&] { return replica.command({"TIME"}).substr(0, 10) != second; }))
      << "a fence is above all of earlier seconds";
  LockManager other(open(replica));
  const Lock next = other.lock("k", asLongAsWeLike);
  EXPECT_TRUE(first.valid()) << "two holders: what the page of guarantees says";
  expectHigherFence(next, first.fence());
}

TEST_P(ServerLoss, AFullServerGrantsNothingAndReleasesWhatIsHeld) {
  const RedisServer server;
  const auto driver = open(server);
  const Claimant held{};
  ASSERT_TRUE(granted(driver->acquire(held.request())));
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  const Claimant refused{};
  EXPECT_THROW((void)driver->acquire(refused.request()), StoreUnavailable);
  EXPECT_EQ(server.command({"EXISTS", refused.key}), "0");
  Renewal renewal{.claim = held.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, isLegacy() ? RenewOutcome::unavailable : RenewOutcome::renewed);
  EXPECT_EQ(driver->release(held.claim(), soon()), ReleaseOutcome::released);
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "0"}), "OK");
  EXPECT_TRUE(granted(driver->acquire(refused.request())));
}

TEST_P(ServerLoss, AClockThatJumpsAheadLetsASecondHolderInUntilTheFirstOneRenews) {
  const ChildClock clock;
  const RedisServer server({.environment = clock.environment()});
  LockManager manager(open(server));
  Lock first = manager.lock("k", asLongAsWeLike);
  clock.jump(+3600);
  LockManager other(open(server));
  const Lock second = other.lock("k", asLongAsWeLike);
  EXPECT_TRUE(first.valid()) << "two holders: what the page of guarantees says";
  expectHigherFence(second, first.fence());
  EXPECT_FALSE(renews(first));
  EXPECT_TRUE(second.valid());
}

TEST_P(ServerLoss, AClockThatJumpsBackKeepsTheKeyOfASilentHolderForLonger) {
  const ChildClock clock;
  const RedisServer server({.environment = clock.environment()});
  const auto driver = open(server);
  const Claimant silent{};
  ASSERT_TRUE(granted(driver->acquire(silent.request())));
  clock.jump(-3600);
  // Valkey does not look at its clock for each command.
  EXPECT_TRUE(waitUntil([&] { return driver->holder(silent.key, soon())->remaining > 50min; }));
  Renewal renewal{.claim = silent.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_LT(driver->holder(silent.key, soon())->remaining, longTtl + 1min) << "until it renews";
}

INSTANTIATE_TEST_SUITE_P(Schemes, ServerLoss, ::testing::Values("redis", "redis+legacy"), schemeName);

}  // namespace
}  // namespace lockkeeper::test
