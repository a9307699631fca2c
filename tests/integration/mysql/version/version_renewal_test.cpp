// Many locks are renewed at once, however far away the server is.

#include <Poco/Data/Session.h>
#include <Poco/Data/Statement.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "lockkeeper/base/key.h"
#include "lockkeeper/mysql/server_rows.h"
#include "lockkeeper/store_uri.h"
#include "version_fixture.h"
#include "wait_until.h"

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

// One by one, after the server has refused them all together.
TEST_P(VersionRenewal, AnAnswerThatComesTooLateIsNotTakenForThatOfTheNextCall) {
  const auto driver = store.openProxied("connections=1");
  const auto held = acquired(*driver, 2);
  std::vector<Renewal> renewals;
  for (const Claimant& each : held) renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  // Not by Poco: MySQL does not prepare it.
  const auto execute = [&](const std::string& statement) {
    mysql::ServerRows rows(StoreUri::parse(store.server.uri(store.database)), {});
    rows.begin().execute(statement, {});
  };
  execute(
      "CREATE TRIGGER refuses BEFORE UPDATE ON lockkeeper_locks FOR EACH ROW "
      "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213");
  store.proxy.set({.kind = ProxyFault::Kind::step, .text = "SKIP LOCKED"});
  driver->renew(renewals, in(1s));
  EXPECT_EQ(store.proxy.fired(), 1U);
  for (const Renewal& each : renewals) EXPECT_EQ(each.outcome, RenewOutcome::unknown) << each.cause;
  execute("DROP TRIGGER refuses");

  Claimant other{};
  other.key = held.front().key;
  auto result = std::async(std::launch::async, [&] { return driver->acquire(other.request()); });
  (void)result.wait_for(500ms);  // On the same session, it would read that answer now.
  store.proxy.passThrough();
  EXPECT_FALSE(granted(result.get()));
}

TEST_P(VersionRenewal, AProcessThatIsPausedWhileItRenewsKeepsNoRow) {
  const auto held = acquired(*store.direct, 2);
  Environment paused;
  paused.clock = std::make_shared<StoppedClock>();
  const auto driver = openVersion(store.database, store.proxy.port(), "", paused);
  (void)driver->holder("logs in", paused.clock->now() + 2s);
  Poco::Data::Session blocker = store.session();
  blocker.begin();
  blocker << "UPDATE lockkeeper_locks SET version = version + 1 WHERE lock_key = '" + held[0].key + "'",
      Poco::Data::Keywords::now;
  std::vector<Renewal> renewals;
  for (const Claimant& each : held) renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  store.proxy.set({.kind = ProxyFault::Kind::step, .text = "COMMIT"});
  auto renewing = std::async(std::launch::async, [&] { driver->renew(renewals, paused.clock->now() + 2s); });
  EXPECT_TRUE(waitUntil([&] { return store.proxy.fired() == 1; })) << "it has the row of the second key";
  Claimant other{};
  other.key = held[1].key;
  EXPECT_TRUE(waitUntil([&] {
    try {
      EXPECT_FALSE(granted(store.direct->acquire(other.request())));
      return true;
    } catch (const StoreUnavailable&) {  // the row is kept
      return false;
    }
  }));
  blocker.rollback();
  store.proxy.passThrough();
  renewing.get();
  EXPECT_NE(renewals[1].outcome, RenewOutcome::renewed);
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionRenewal, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
