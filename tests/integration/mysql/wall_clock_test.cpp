// What becomes of locks when the server's wall clock is set.

#include <vector>

#include "child_clock.h"
#include "getlock/getlock_fixture.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class ServersWallClock : public ::testing::TestWithParam<Brand> {
 protected:
  std::shared_ptr<LockDriver> open(const std::string& scheme) const {
    StoreRegistry registry;
    mysql::use(registry);
    const std::string uri = server.uri(database);
    return registry.open(scheme + uri.substr(uri.find("://")) + "?createTable=true");
  }
  static Claimant another(const Claimant& who) {
    Claimant other;
    other.key = who.key;
    return other;
  }

  const ChildClock clock;
  DatabaseServer server{GetParam(), {}, clock.environment()};
  const std::string database = server.newDatabase();
};

TEST_P(ServersWallClock, EndsNoLeaseOfGetLockWhenItJumps) {
  const auto driver = open("mysql+getlock");
  const auto elsewhere = open("mysql+getlock");
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(requestFor(who, 1min))));
  for (const std::int64_t seconds : {+3600, -3600}) {
    clock.jump(seconds);
    EXPECT_FALSE(granted(elsewhere->acquire(another(who).request())));
    EXPECT_EQ(renew(*driver, who, 1min), RenewOutcome::renewed);
  }
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_P(ServersWallClock, LetsASecondHolderOfAVersionRowInWhenItJumpsAhead) {
  const auto driver = open("mysql+version");
  const Claimant who{};
  const AcquireResult first = driver->acquire(who.request());
  ASSERT_TRUE(granted(first));
  clock.jump(+3600);
  const AcquireResult second = driver->acquire(another(who).request());
  ASSERT_TRUE(granted(second)) << "two holders: what the page of guarantees says";
  EXPECT_GT(std::get<Granted>(second).fence, std::get<Granted>(first).fence);
  EXPECT_EQ(renew(*driver, who), RenewOutcome::notOwner);
}

TEST_P(ServersWallClock, KeepsAVersionRowForLongerWhenItJumpsBack) {
  const auto driver = open("mysql+version");
  const Claimant silent{};
  ASSERT_TRUE(granted(driver->acquire(silent.request())));
  clock.jump(-3600);
  EXPECT_GT(driver->holder(silent.key, soon())->remaining, 50min);
  EXPECT_EQ(renew(*driver, silent), RenewOutcome::renewed);
  EXPECT_LT(driver->holder(silent.key, soon())->remaining, longTtl + 1min) << "until it renews";
}

// The rows were freed at a time that is still to come.
TEST_P(ServersWallClock, GivesAGrantOfAVersionRowItsTtlAndNoMoreAfterItWasSetBack) {
  const auto driver = open("mysql+version");
  std::vector<Claimant> claimants{{.key = "several a"}, {.key = "several b"}, {.key = "whole"},
                                  {.key = "lone"},      {.key = "shared"},    {.key = "shared"}};
  for (std::size_t i = 3; i < claimants.size(); ++i) claimants[i].share = Share{1, 2};
  const auto acquireAll = [&] {
    const std::vector<AcquireRequest> several{claimants[0].request(), claimants[1].request()};
    for (const AcquireResult& each : capability<Batchable>(*driver)->acquireInOrder(several))
      EXPECT_TRUE(granted(each));
    for (std::size_t i = 2; i < claimants.size(); ++i)
      EXPECT_TRUE(granted(driver->acquire(claimants[i].request())));
  };
  acquireAll();
  for (const Claimant& each : claimants)
    ASSERT_EQ(driver->release(each.claim(), soon()), ReleaseOutcome::released);
  clock.jump(-3600);
  for (Claimant& each : claimants) each.token = Claimant{}.token;
  acquireAll();
  for (const Claimant& each : claimants)
    EXPECT_LE(driver->holder(each.key, soon())->remaining, longTtl) << each.key;
}

INSTANTIATE_TEST_SUITE_P(Brands, ServersWallClock, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
