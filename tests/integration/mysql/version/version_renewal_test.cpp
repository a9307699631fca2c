// Many locks are renewed at once, however far away the server is.

#include <thread>
#include <vector>

#include "lockkeeper/driver/key.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using VersionRenewal = VersionTest;

// As many as LockManager passes to one call.
constexpr std::size_t group = 1024;

std::vector<Claimant> acquired(LockDriver& driver, std::size_t count) {
  std::vector<Claimant> claimants(count);
  for (const Claimant& each : claimants) EXPECT_TRUE(granted(driver.acquire(each.request())));
  return claimants;
}

TEST_P(VersionRenewal, AServerThatAnswersLateIsWaitedForOnceForAWholeGroup) {
  const auto driver = store.openProxied();
  const auto held = acquired(*driver, group);
  std::vector<Renewal> renewals;
  for (std::size_t i = 0; i < group; ++i) {
    renewals.push_back({.claim = held[i].claim(), .ttl = i % 3 == 0 ? longTtl : 2 * longTtl});
  }
  store.proxy.set({.kind = ProxyFault::Kind::delay, .pause = 500ms});
  driver->renew(renewals, in(20s));
  EXPECT_EQ(store.proxy.requests(), 1U);
  EXPECT_GT(store.proxy.fired(), 0U);
  for (const Renewal& each : renewals) ASSERT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
}

TEST_P(VersionRenewal, MoreThanAGroupAreRenewedAsWell) {
  const auto held = acquired(*store.direct, group + 10);
  std::vector<Renewal> renewals;
  for (const Claimant& each : held) renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  store.direct->renew(renewals, in(1min));
  for (const Renewal& each : renewals) ASSERT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
}

TEST_P(VersionRenewal, WhereNoFurtherSessionCanBeOpenedTheOneThereIsServesAll) {
  const auto driver = store.openProxied();
  const auto held = acquired(*driver, 4);
  ASSERT_EQ(store.proxy.connections(), 1U);
  store.proxy.set({.kind = ProxyFault::Kind::delay, .pause = 300ms});
  store.proxy.leadTo(1);  // nobody listens there
  std::vector<Renewal> renewals;
  for (const Claimant& each : held) renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  {
    std::vector<std::jthread> callers;
    for (Renewal& each : renewals) callers.emplace_back([&] { driver->renew({&each, 1}, soon()); });
  }
  EXPECT_GT(store.proxy.connections(), 1U);
  for (const Renewal& each : renewals) EXPECT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
}

// The longest statement that there is.
TEST_P(VersionRenewal, AGroupOfTheLongestKeysIsRenewed) {
  std::vector<Claimant> held(group);
  std::vector<Renewal> renewals;
  for (Claimant& each : held) {
    each.key.resize(maxKeyBytes, 'x');
    ASSERT_TRUE(granted(store.direct->acquire(each.request())));
    renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  }
  store.direct->renew(renewals, in(1min));
  for (const Renewal& each : renewals) ASSERT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionRenewal, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
