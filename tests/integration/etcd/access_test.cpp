// Over TLS, and with a user who may read and write below its prefix and nothing else.

#include <functional>
#include <future>
#include <map>
#include <vector>

#include "etcd_fixture.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

struct Access {
  const char* name;
  std::function<EtcdOptions()> options;
  std::function<std::string()> query;
};

void PrintTo(const Access& access, std::ostream* out) { *out << access.name; }

class EtcdAccess : public ::testing::TestWithParam<Access> {
 protected:
  static std::shared_ptr<LockDriver> open(const EtcdCluster& cluster) {
    return openEtcd(cluster.uri(), patient + GetParam().query());
  }
  /// One for each way, for all tests of the process.
  static EtcdCluster& cluster() {
    static std::map<std::string, EtcdCluster> all;
    return all.try_emplace(GetParam().name, GetParam().options()).first->second;
  }

  const std::shared_ptr<LockDriver> driver = open(cluster());
  const Claimant who{};
};

TEST_P(EtcdAccess, TakesRenewsShowsAndReleases) {
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  Renewal renewals[] = {{.claim = who.claim(), .ttl = longTtl}, {.claim = who.claim(), .ttl = 1min}};
  driver->renew(renewals, soon());
  EXPECT_EQ(renewals[0].outcome, RenewOutcome::renewed) << renewals[0].cause;
  EXPECT_EQ(renewals[1].outcome, RenewOutcome::renewed) << renewals[1].cause;
  EXPECT_EQ(driver->holder(who.key, soon())->owner, "test:1");
  std::size_t listed = 0;
  const auto count = [&](std::string_view, const Holder& holder) {
    EXPECT_TRUE(holder.remaining) << "a lease may be asked for";
    return ++listed > 0;
  };
  capability<Browsable>(*driver)->list(who.key, count, soon());
  EXPECT_EQ(listed, 1U);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_FALSE(driver->holder(who.key, soon()));
}

TEST_P(EtcdAccess, WaitsOnAStream) {
  Claimant next;
  next.key = who.key;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const std::size_t before = cluster().watchMessages();
  auto result = std::async(std::launch::async, [&] {
    return capability<Waitable>(*driver)->acquireWaiting(next.request(), 1min, {});
  });
  EXPECT_TRUE(waitUntil([&] { return cluster().watchMessages() > before; })) << "the stream is there";
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(granted(result.get()));
  EXPECT_EQ(driver->release(next.claim(), soon()), ReleaseOutcome::released);
}

TEST_P(EtcdAccess, ManyRenewalsShareItsConnections) {
  std::vector<Claimant> claimants(40);
  std::vector<Renewal> renewals;
  for (const Claimant& each : claimants) {
    ASSERT_TRUE(granted(driver->acquire(each.request())));
    renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  }
  driver->renew(renewals, soon());
  for (const Renewal& each : renewals) EXPECT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
  for (const Claimant& each : claimants) {
    EXPECT_EQ(driver->release(each.claim(), soon()), ReleaseOutcome::released);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EtcdAccess,
    ::testing::Values(Access{.name = "Tls",
                             .options = [] { return EtcdOptions{.nodes = 1, .tls = true}; },
                             .query = [] { return "&caFile=" + TlsFiles::shared().authority().string(); }},
                      Access{.name = "User",
                             .options = [] { return EtcdOptions{.nodes = 1, .password = "open-sesame"}; },
                             .query = [] { return std::string(); }}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace lockkeeper::test
