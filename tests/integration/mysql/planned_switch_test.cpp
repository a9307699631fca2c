// A planned switch: the primary becomes read-only, its connections stay, and its name leads to another
// server.

#include <Poco/Data/Session.h>
#include <gmock/gmock.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "getlock/fence_counter.h"
#include "getlock/getlock_fixture.h"
#include "hosts/session_opener.h"
#include "lockkeeper/mysql/rate_table.h"
#include "lockkeeper/mysql/server_rows.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/store_registry.h"
#include "session/server_options.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Two servers of a brand, whose databases have the same names.
struct TwoServers {
  explicit TwoServers(Brand brand) : former(brand), next(brand) {}
  DatabaseServer former, next;
};

TwoServers& serversOf(Brand brand) {
  static std::map<Brand, TwoServers> servers;
  return servers.try_emplace(brand, brand).first->second;
}

class PlannedSwitch : public ::testing::TestWithParam<Brand> {
 protected:
  void SetUp() override {
    ASSERT_EQ(database, same);
    former.letClerkIn(database);
    next.letClerkIn(database);
  }
  void TearDown() override { former.execute("SET GLOBAL read_only = 0"); }
  std::string uri(const std::string& scheme, const std::string& query = "") const {
    return scheme + "://clerk:clerk@127.0.0.1:" + std::to_string(name.port()) + "/" + database + query;
  }
  std::shared_ptr<LockDriver> open(const std::string& scheme, const std::string& query = "") const {
    StoreRegistry registry;
    mysql::use(registry);
    return registry.open(uri(scheme, "?createTable=true" + query));
  }
  void switchOver() {
    former.execute("SET GLOBAL read_only = 1");
    name.leadTo(next.port());
  }

  /// The new primary is reached by trying again, and nothing else than StoreUnavailable is heard before.
  template <class Call>
  static void reaches(Call&& call) {
    EXPECT_TRUE(waitUntil([&] {
      try {
        call();
        return true;
      } catch (const StoreUnavailable&) {
        return false;
      }
    }));
  }

  DatabaseServer& former = serversOf(GetParam()).former;
  DatabaseServer& next = serversOf(GetParam()).next;
  const std::string database = former.newDatabase();
  const std::string same = next.newDatabase();
  FaultProxy name{former.port()};
};

TEST_P(PlannedSwitch, TellsAHolderOfGetLockAtItsNextRenewal) {
  for (const char* const fences : {"&fence=on", "&fence=off"}) {
    SCOPED_TRACE(fences);
    const auto driver = open("mysql+getlock", fences);
    const Claimant who{};
    const Claimant another{};
    ASSERT_TRUE(granted(driver->acquire(who.request())));
    switchOver();
    Claimant rival;
    rival.key = who.key;
    EXPECT_TRUE(granted(open("mysql+getlock", fences)->acquire(rival.request())));
    EXPECT_EQ(renew(*driver, who), RenewOutcome::notOwner) << "a silent second holder";
    reaches([&] { EXPECT_TRUE(granted(driver->acquire(another.request()))); });
    former.execute("SET GLOBAL read_only = 0");
    name.leadTo(former.port());
  }
}

TEST_P(PlannedSwitch, AClaimOnTheFormerPrimaryIsNoGrant) {
  for (const char* const fences : {"&fence=on", "&fence=off"}) {
    SCOPED_TRACE(fences);
    const auto driver = open("mysql+getlock", fences);
    (void)driver->holder("connects", soon());
    switchOver();
    const Claimant who{};
    EXPECT_THROW((void)driver->acquire(who.request()), StoreUnavailable);
    reaches([&] { EXPECT_TRUE(granted(driver->acquire(who.request()))); });
    former.execute("SET GLOBAL read_only = 0");
    name.leadTo(former.port());
  }
}

TEST_P(PlannedSwitch, VersionRowsLimitsFencesAndRowsReachTheNewPrimary) {
  const auto locks = open("mysql+version");
  mysql::RateTable limits(StoreUri::parse(uri("mysql+version", "?createTable=true")));
  mysql::FenceCounter fences(StoreUri::parse(uri("mysql", "?createTable=true")), {});
  mysql::ServerRows rows(StoreUri::parse(uri("mysql")), {});
  const RatePolicy policy{"p", {.rate = {1'000'000, 1s}, .burst = 1000}};
  const auto lock = [&] { EXPECT_TRUE(granted(locks->acquire(Claimant{}.request()))); };
  const auto take = [&] {
    RateCharge charge{.key = "k", .law = &policy.law()};
    limits.take({&charge, 1}, soon());
  };
  const auto draw = [&] { (void)fences.next(Claimant{}.claim(), false, soon()); };
  const auto write = [&] {
    auto transaction = rows.begin();
    transaction.execute("DELETE FROM lockkeeper_locks WHERE lock_key = ?", {std::string("none")});
    transaction.execute("INSERT INTO lockkeeper_rates (family, id) VALUES (?, ?)",
                        {std::int64_t{7}, std::to_string(now().time_since_epoch().count())});
    transaction.commit();
  };
  for (const auto& each : std::initializer_list<std::function<void()>>{lock, take, draw, write}) each();
  switchOver();
  for (const auto& each : std::initializer_list<std::function<void()>>{lock, take, draw, write})
    reaches(each);
}

// A session of the other server may have the number of the one whose statement is to be ended.
TEST_P(PlannedSwitch, AChargeThatIsGivenUpEndsNothingOnTheOtherServer) {
  const auto newestSession = [](const DatabaseServer& at) {
    return std::stoul(at.ask("SELECT CONNECTION_ID()"));
  };
  const std::size_t higher = newestSession(next) + 5;
  while (newestSession(former) < higher) continue;
  mysql::RateTable limits(StoreUri::parse(uri("mysql+version", "?createTable=true")));
  const RatePolicy policy{"p", {.rate = {1'000'000, 1s}, .burst = 1000}};
  RateCharge charge{.key = "k", .law = &policy.law()};
  limits.take({&charge, 1}, soon());
  using Poco::Data::Keywords::into;
  Poco::Data::Session keeping("MySQL", former.connectionString(database), 10);
  std::int64_t number = 0;
  keeping << "SELECT id FROM information_schema.processlist WHERE user = 'clerk' AND db = '" + database + "'",
      into(number), Poco::Data::Keywords::now;
  keeping.begin();
  keeping << "UPDATE lockkeeper_rates SET granted = 0", Poco::Data::Keywords::now;

  mysql::SessionOpener opener(mysql::ServerOptions::fromUri(StoreUri::parse(next.uri(same))), {}, {});
  std::unique_ptr<mysql::ServerSession> namesake;
  while (!namesake || namesake->id() < static_cast<std::uint64_t>(number)) namesake = opener.open(soon());
  ASSERT_EQ(namesake->id(), static_cast<std::uint64_t>(number));
  std::optional<std::uint64_t> interrupted;
  std::jthread sleeping([&] { interrupted = namesake->query("SELECT SLEEP(2)", soon()).number(0); });
  name.leadTo(next.port());
  EXPECT_THROW(limits.take({&charge, 1}, in(600ms)), OutcomeUnknown) << "nobody has ended it";
  sleeping.join();
  EXPECT_EQ(interrupted, 0U);
  keeping.rollback();
}

INSTANTIATE_TEST_SUITE_P(Brands, PlannedSwitch, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
