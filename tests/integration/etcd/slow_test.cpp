// Servers that answer slowly, and callers with little time.

#include <algorithm>
#include <vector>

#include "etcd_fixture.h"
#include "fault_proxy.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class EtcdSlow : public ::testing::Test {
 protected:
  static EtcdCluster& cluster() {
    static EtcdCluster one({.nodes = 1});
    return one;
  }

  FaultProxy proxy{cluster().port(0)};
};

TEST_F(EtcdSlow, OfManyLocksThoseAreRenewedThatTheTimeIsEnoughFor) {
  const auto driver = openEtcd(etcdUri(proxy.port()));
  const std::vector<Claimant> all(310);
  std::vector<Renewal> renewals;
  for (const Claimant& each : all) {
    ASSERT_TRUE(granted(driver->acquire(each.request())));
    renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  }
  // To look at all of them would take longer than there is time.
  proxy.set({.kind = ProxyFault::Kind::delay, .pause = 700ms});
  driver->renew(renewals, in(4s));
  const auto renewed = std::count_if(renewals.begin(), renewals.end(), [](const Renewal& each) {
    return each.outcome == RenewOutcome::renewed;
  });
  EXPECT_GT(renewed, 0);
  EXPECT_LT(renewed, 310) << "there was not enough time";
}

TEST_F(EtcdSlow, ACallerWithLittleTimeMakesNoMemberSuspect) {
  const std::string other = ",127.0.0.1:" + std::to_string(cluster().port(0));
  const auto driver = openEtcd(etcdUri(proxy.port()) + other);
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  proxy.set({.kind = ProxyFault::Kind::dropReplies});
  EXPECT_THROW((void)driver->holder(who.key, in(100ms)), StoreUnavailable);
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, in(100ms));
  EXPECT_EQ(renewal.outcome, RenewOutcome::unavailable);
  driver->renew({&renewal, 1}, now());
  EXPECT_EQ(renewal.outcome, RenewOutcome::unavailable);
  proxy.passThrough();
  EXPECT_TRUE(driver->holder(who.key, soon()));
  EXPECT_GT(proxy.replyBytes(), 0U) << "the same member is asked";
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

}  // namespace
}  // namespace lockkeeper::test
