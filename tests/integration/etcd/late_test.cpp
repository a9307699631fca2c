// Requests that the server gets when their caller has given them up long since.

#include "late_fixture.h"

#include <algorithm>

#include "lockkeeper/driver/queue.h"

namespace lockkeeper::test {
namespace {

TEST_F(EtcdLate, AClaimThatIsAskedForAgainStaysOnItsLatestLease) {
  const Claimant who = another();
  ASSERT_TRUE(granted(direct->acquire(who.request())));
  keepBack(aPut, 1);
  expectDoubt([&] { return proxied->acquire(who.request(soon(), true)); });
  ASSERT_TRUE(granted(direct->acquire(who.request(soon(), true))));
  const auto before = cluster().firstClaim(key);
  sendLate();
  EXPECT_EQ(cluster().firstClaim(key).lease, before.lease);
  EXPECT_EQ(direct->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdLate, ARenewedClaimStaysOnItsLatestLease) {
  const Claimant who = another();
  ASSERT_TRUE(granted(direct->acquire(who.request())));
  keepBack(aPut);
  Renewal first{.claim = who.claim(), .ttl = 1min};
  {
    const auto ending = endHeldConnection();
    proxied->renew({&first, 1}, soon());
  }
  EXPECT_EQ(first.outcome, RenewOutcome::unknown);
  Renewal second{.claim = who.claim(), .ttl = 2min};
  direct->renew({&second, 1}, soon());
  ASSERT_EQ(second.outcome, RenewOutcome::renewed);
  const auto before = cluster().firstClaim(key);
  sendLate();
  EXPECT_EQ(cluster().firstClaim(key).lease, before.lease);
  EXPECT_EQ(direct->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdLate, AClaimThatHasWaitedStaysOnItsLatestLease) {
  const Claimant who = another();
  keepBack(aPut, 1);  // after the one that enters the queue
  expectDoubt([&] { return wait(who).get(); });
  ASSERT_TRUE(granted(direct->acquire(who.request(soon(), true))));
  const auto before = cluster().firstClaim(key);
  sendLate();
  EXPECT_EQ(cluster().firstClaim(key).lease, before.lease);
  EXPECT_EQ(direct->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdLate, AClaimThatWasGivenUpTakesNoLock) {
  const auto before = cluster().leases();
  const Claimant who = another();
  keepBack(aPut);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  sendLate();
  EXPECT_FALSE(direct->holder(key, soon()));
  EXPECT_TRUE(waitUntil([&] {
    const auto now = cluster().leases();
    return std::includes(before.begin(), before.end(), now.begin(), now.end());
  })) << "its lease is far longer";
}

TEST_F(EtcdLate, AClaimThatComesBackAfterItWasTakenAwayIsLost) {
  const Claimant who = another();
  keepBack(aPut);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  ASSERT_TRUE(granted(direct->acquire(who.request(soon(), true))));
  ASSERT_TRUE(cluster().removeLastClaim(key));
  sendLate();
  ASSERT_TRUE(direct->holder(key, soon()));
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  direct->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::notOwner) << "others may have had it meanwhile";
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdLate, AWaitEndsOneTimeoutAfterItsStopWhateverIsUnderWay) {
  const auto slow = openEtcd(etcdUri(proxy.port()) + "?connectTimeout=5s&ioTimeout=6s");
  const Claimant holds = another();
  ASSERT_TRUE(granted(direct->acquire(holds.request())));
  const std::size_t before = cluster().watchMessages();
  auto result = std::async(std::launch::async, [&] {
    return capability<Waitable>(*slow)->acquireWaiting(another().request(), 1min, stop_.get_token());
  });
  ASSERT_TRUE(queued(1));
  ASSERT_TRUE(waitUntil([&] { return cluster().watchMessages() > before; })) << "the stream is there";
  proxy.set({.kind = ProxyFault::Kind::delay, .pause = 5500ms});
  ASSERT_TRUE(waitUntil([&] { return proxy.fired() > 0; })) << "the lease is being kept alive";
  const Instant stopped = now();
  stop_.request_stop();
  try {
    EXPECT_FALSE(granted(result.get()));
  } catch (const OutcomeUnknown&) {
  }
  EXPECT_LT(now() - stopped, 6s + 3s) << "two calls would take eleven";
  EXPECT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdLate, AClaimThatIsGoneWhenItsWaiterComesBackHoldsNothing) {
  const Claimant holds = another();
  const Claimant who = another();
  ASSERT_TRUE(granted(direct->acquire(holds.request())));
  std::stop_source stop;
  Result first = wait(who, stop.get_token());
  ASSERT_TRUE(queued(1));
  const auto place = cluster().lastClaim(key);
  keepBack(aRemoval);
  stop.request_stop();
  expectDoubt([&] { return first.get(); });
  FaultProxy slow(cluster().port(0));
  const auto again = openEtcd(etcdUri(slow.port()));
  ASSERT_TRUE(again->holder(key, soon()));
  slow.set({.kind = ProxyFault::Kind::delay, .pause = 1s});
  const std::size_t before = cluster().requests();
  auto result = std::async(std::launch::async, [&] {
    return capability<Waitable>(*again)->acquireWaiting(who.request(), 1min, stop_.get_token());
  });
  ASSERT_TRUE(waitUntil([&] { return cluster().requests() > before; })) << "its place is found, and ...";
  (void)cluster().remove(place);  // On a slow machine its lease has ended by then: it is gone anyway.
  slow.passThrough();
  EXPECT_TRUE(queued(1)) << "it queues again";
  EXPECT_EQ(result.wait_for(0s), std::future_status::timeout) << "somebody has the lock";
  EXPECT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  const AcquireResult given = result.get();
  ASSERT_TRUE(granted(given));
  EXPECT_GT(*std::get<Granted>(given).fence, 0U);
  EXPECT_EQ(again->release(who.claim(), soon()), ReleaseOutcome::released);
}

}  // namespace
}  // namespace lockkeeper::test
