// Several hosts: a primary and a streaming standby that takes over.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/rate_policy.h"
#include "postgres_fixture.h"
#include "succeeds_in_the_end.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::string hostsUri(std::uint16_t first, std::uint16_t second) {
  return "postgres+version://keeper:p%40ss%2Fword@127.0.0.1:" + std::to_string(first) +
         ",127.0.0.1:" + std::to_string(second) + "/locks";
}

struct DoubtCounter final : LossListener {
  void claimsLost(std::span<const Token> /*tokens*/) noexcept override {}
  void claimsInDoubt() noexcept override { ++count; }

  std::atomic<int> count = 0;
};

class PostgresHosts : public ::testing::Test {
 protected:
  PostgresHosts() {
    primary.makeLocks();
    standby = std::make_unique<PostgresServer>(primary, std::vector<std::string>{"hot_standby=on"});
    // What the standby has not received is lost with the primary.
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.execute("SELECT pg_reload_conf()");
    EXPECT_TRUE(waitUntil([this] { return primary.ask("SHOW synchronous_standby_names") == "*"; }));
    driver = openPostgres(hostsUri(standby->port(), primary.port()), "connectTimeout=1s");
  }

  PostgresServer primary{{"wal_level=replica"}};
  std::unique_ptr<PostgresServer> standby;
  std::shared_ptr<LockDriver> driver;
};

TEST_F(PostgresHosts, TheOneThatTakesTheWritesIsUsedAndLookedForAgain) {
  const auto doubts = std::make_shared<DoubtCounter>();
  capability<DoubtReporting>(*driver)->addDoubtListener(doubts);
  const Claimant who;
  const AcquireResult first = driver->acquire(who.request());
  ASSERT_TRUE(granted(first));
  RateDriver& limits = *capability<RateDriver>(*driver);
  const RatePolicy policy("p", {.rate = {3, 24h}});
  RateCharge charge{.key = "k", .law = &policy.law(), .cost = 2};
  limits.take({&charge, 1}, soon());
  ASSERT_EQ(charge.outcome.granted, 1);
  primary.kill();
  standby->execute("ALTER SYSTEM SET synchronous_standby_names = ''", "postgres");
  standby->promote();
  AcquireResult again;
  succeedsInTheEnd([&] { again = driver->acquire(who.request(soon(), true)); });
  ASSERT_TRUE(granted(again)) << "the standby has the lock";
  EXPECT_EQ(std::get<Granted>(again).fence, std::get<Granted>(first).fence);
  EXPECT_GE(doubts->count, 1) << "all leases are to be renewed there";
  succeedsInTheEnd([&] { limits.take({&charge, 1}, soon()); });
  EXPECT_EQ(charge.outcome.granted, 0) << "the standby has what was charged";
  EXPECT_EQ(charge.outcome.remaining, 1);
}

// The old primary comes back and takes writes, as after a cut of the network.
TEST_F(PostgresHosts, OfTwoThatTakeWritesTheOnePromotedLastIsUsed) {
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  standby->execute("ALTER SYSTEM SET synchronous_standby_names = ''", "postgres");
  standby->promote();
  primary.execute("ALTER SYSTEM SET synchronous_standby_names = ''; ", "postgres");
  primary.execute("SELECT pg_reload_conf()", "postgres");
  capability<DoubtReporting>(*driver)->checkServer(soon());
  const Claimant next;
  ASSERT_TRUE(granted(driver->acquire(next.request())));
  const auto onlyNew = openPostgres(standby->uri("postgres+version"));
  EXPECT_TRUE(onlyNew->holder(next.key, soon())) << "the new primary was asked";
  // Whichever of them answers first.
  for (PostgresServer* const slow : {&primary, standby.get()}) {
    FaultProxy way(slow->port());
    way.set({.kind = ProxyFault::Kind::delay, .pause = 8ms});
    const PostgresServer& fast = slow == &primary ? *standby : primary;
    const auto another = openPostgres(hostsUri(way.port(), fast.port()), "connectTimeout=5s");
    const Claimant third;
    ASSERT_TRUE(granted(another->acquire(third.request())));
    EXPECT_TRUE(onlyNew->holder(third.key, soon()));
  }
  // What the old one would grant now, the new one does not know.
  standby->kill();
  ASSERT_TRUE(granted(openPostgres(primary.uri("postgres+version"))->acquire(Claimant{}.request())));
  std::string said;
  ASSERT_TRUE(waitUntil([&] {
    try {
      said = granted(driver->acquire(Claimant{}.request())) ? "granted" : "busy";
    } catch (const OutcomeUnknown&) {  // It was sent before the end of the session could be seen.
      return false;
    } catch (const StoreUnavailable& error) {
      said = error.what();
    }
    return true;
  }));
  EXPECT_NE(said.find("has taken over from it"), std::string::npos) << said;
}

TEST_F(PostgresHosts, AStandbyAloneIsUnavailable) {
  const auto alone = openPostgres(standby->uri("postgres+version"));
  try {
    (void)alone->acquire(Claimant{}.request());
    ADD_FAILURE() << "granted by a standby";
  } catch (const StoreUnavailable& error) {
    EXPECT_NE(std::string(error.what()).find("takes no writes"), std::string::npos) << error.what();
  }
}

TEST_F(PostgresHosts, FencesAreDurableOnlyWhereAStandbyHasThem) {
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  const std::string synchronous = driver->promises().durability;
  EXPECT_EQ(synchronous.find("asynchronous"), synchronous.npos) << synchronous;
  primary.execute("ALTER SYSTEM SET synchronous_standby_names = ''");
  primary.execute("SELECT pg_reload_conf()");
  EXPECT_TRUE(waitUntil([this] { return primary.ask("SHOW synchronous_standby_names").empty(); }));
  const auto later = openPostgres(hostsUri(standby->port(), primary.port()));
  ASSERT_TRUE(granted(later->acquire(Claimant{}.request())));
  EXPECT_NE(later->promises().durability.find("asynchronous"), synchronous.npos);
}

// Nothing else tells whether it is the same server behind the name, with all that it has confirmed.
TEST(PostgresHostsOne, AServerThatWasStartedAnewIsInDoubt) {
  PostgresServer server;
  server.makeLocks();
  const auto driver = openPostgres(server.uri("postgres+version"));
  const auto doubts = std::make_shared<DoubtCounter>();
  capability<DoubtReporting>(*driver)->addDoubtListener(doubts);
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  server.endSessions();
  succeedsInTheEnd([&] { (void)driver->acquire(Claimant{}.request()); });
  EXPECT_EQ(doubts->count, 0) << "it is the same one";
  server.restart();
  succeedsInTheEnd([&] { (void)driver->acquire(Claimant{}.request()); });
  EXPECT_EQ(doubts->count, 1);
}

// A name leads to another server now, and the old one is still there.
TEST(PostgresHostsOne, AFailoverThatLeavesTheConnectionsOpenIsNoticed) {
  PostgresServer next;
  next.makeLocks();
  FaultProxy way(postgresServer().port());
  const auto driver = openPostgres(PostgresServer::uri("postgres+version", way.port()));
  const auto doubts = std::make_shared<DoubtCounter>();
  auto& reporting = *capability<DoubtReporting>(*driver);
  reporting.addDoubtListener(doubts);
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  way.leadTo(next.port());
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  EXPECT_EQ(doubts->count, 0) << "its connection is open";
  reporting.checkServer(soon());
  EXPECT_EQ(doubts->count, 1);
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_TRUE(openPostgres(next.uri("postgres+version"))->holder(who.key, soon()));
  const std::size_t connections = way.connections();
  reporting.checkServer(soon());
  EXPECT_EQ(way.connections(), connections) << "each log-in costs the server something";
}

}  // namespace
}  // namespace lockkeeper::test
