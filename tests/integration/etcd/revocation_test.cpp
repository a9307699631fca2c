// A lock that somebody takes away: when its holder hears of it.

#include <future>

#include "etcd_fixture.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class EtcdRevocation : public ::testing::Test {
 protected:
  static EtcdCluster& cluster() {
    static EtcdCluster one({.nodes = 1});
    return one;
  }
  const std::shared_ptr<LockDriver> driver = openEtcd(cluster().uri());
  const std::shared_ptr<LockDriver> other = openEtcd(cluster().uri());
  const std::string key = Claimant().key;
};

TEST_F(EtcdRevocation, ALockThatIsTakenAwayIsToldAtOnceWhileSomebodyWaits) {
  LockManager manager(driver);
  const Claimant elsewhere;
  ASSERT_TRUE(granted(other->acquire(elsewhere.request())));
  const std::size_t before = cluster().watchMessages();
  for (const bool byBreaking : {true, false}) {
    const Lock lock = manager.lock(key, {.ttl = longTtl});
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] {
      return manager.tryLock(elsewhere.key, {.waitFor = 1min, .stop = stop.get_token()});
    });
    ASSERT_TRUE(waitUntil([&] { return cluster().waitingClaims().size() == 1; }));
    // The stream is there: it is kept from the first round to the second.
    ASSERT_TRUE(waitUntil([&] { return cluster().watchMessages() > before; }));
    if (byBreaking) {
      EXPECT_TRUE(capability<Breakable>(*other)->breakLock(key, soon()));
    } else {
      ASSERT_TRUE(cluster().removeLastClaim(key));
    }
    EXPECT_TRUE(waitUntil([&] { return lock.lost().stop_requested(); })) << "its lease is far longer";
    EXPECT_FALSE(lock.valid());
    stop.request_stop();
    EXPECT_FALSE(waiting.get());
  }
}

TEST_F(EtcdRevocation, ALockWhoseKeyIsGoneIsLostAtItsNextRenewalThoughItsLeaseLives) {
  LockManager manager(driver);
  Lock lock = manager.lock(key, {.ttl = longTtl, .renew = Renew::manual});
  lock.renew();
  ASSERT_TRUE(cluster().removeLastClaim(key));
  EXPECT_THROW(lock.renew(), LockLost);
  EXPECT_FALSE(lock.valid());
}

TEST_F(EtcdRevocation, ALateReleaseLeavesTheNextHoldersLock) {
  const Claimant first;
  Claimant next;
  next.key = first.key;
  ASSERT_TRUE(granted(driver->acquire(first.request())));
  ASSERT_TRUE(cluster().removeLastClaim(first.key));
  ASSERT_TRUE(granted(other->acquire(next.request())));
  EXPECT_EQ(driver->release(first.claim(), soon()), ReleaseOutcome::notOwner);
  const auto holder = other->holder(first.key, soon());
  ASSERT_TRUE(holder);
  EXPECT_EQ(other->release(next.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdRevocation, ABusyAcquireAndAReleaseLeaveNoLeaseBehind) {
  const Claimant first;
  Claimant second;
  second.key = first.key;
  // Others may end meanwhile, and none but ours begins.
  const auto others = cluster().leases();
  const auto ours = [&] {
    std::size_t count = 0;
    for (const std::int64_t id : cluster().leases()) count += others.count(id) == 0 ? 1 : 0;
    return count;
  };
  ASSERT_TRUE(granted(driver->acquire(first.request())));
  EXPECT_EQ(ours(), 1U);
  ASSERT_FALSE(granted(other->acquire(second.request())));
  EXPECT_TRUE(waitUntil([&] { return ours() == 1; })) << "that of who has the lock";
  EXPECT_EQ(driver->release(first.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(waitUntil([&] { return ours() == 0; }));
}

TEST_F(EtcdRevocation, TellsTheLeaseThatTheServerGave) {
  const Claimant who;
  AcquireRequest request = who.request();
  request.ttl = 100ms;
  const AcquireResult result = driver->acquire(request);
  ASSERT_TRUE(granted(result));
  EXPECT_GE(std::get<Granted>(result).leasedFor, 1s) << "whole seconds, and what the election timeout allows";
  Renewal renewal{.claim = who.claim(), .ttl = 100ms};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_EQ(renewal.leasedFor, std::get<Granted>(result).leasedFor);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

}  // namespace
}  // namespace lockkeeper::test
