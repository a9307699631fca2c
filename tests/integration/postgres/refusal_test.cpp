// What a server refuses, and what its settings could change.

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "postgres_fixture.h"
#include "refusal.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

template <class Expected>
std::string refusal(LockDriver& driver) {
  try {
    (void)driver.acquire(Claimant{}.request());
  } catch (const Expected& error) {
    return error.what();
  } catch (const Error& error) {
    return std::string("another error: ") + toString(error.code()) + ": " + error.what();
  }
  return "granted";
}

using PostgresRefusal = PostgresTest;

TEST_F(PostgresRefusal, AWrongPasswordIsAConfigErrorWithoutTheSecret) {
  const auto driver = openPostgres(
      "postgres+version://keeper:wrong-secret@127.0.0.1:" + std::to_string(store.server.port()) + "/locks");
  const std::string said = refusal<ConfigError>(*driver);
  EXPECT_NE(said.find("28P01"), said.npos) << said;
  EXPECT_EQ(said.find("wrong-secret"), said.npos) << said;
}

TEST_F(PostgresRefusal, AMissingTableIsNamedWithItsSchema) {
  const std::string said = refusal<ConfigError>(*store.open("table=elsewhere"));
  EXPECT_NE(said.find("elsewhere"), said.npos) << said;
  EXPECT_NE(said.find("version.sql"), said.npos) << said;
}

TEST_F(PostgresRefusal, AMissingRightIsAConfigError) {
  store.server.execute("REVOKE UPDATE ON lockkeeper_locks FROM keeper");
  const std::string said = refusal<ConfigError>(*store.open());
  store.server.execute("GRANT UPDATE ON lockkeeper_locks TO keeper");
  EXPECT_NE(said.find("42501"), said.npos) << said;
}

TEST_F(PostgresRefusal, AnAccountThatMayNotCreateTablesIsToldWhatItNeeds) {
  const std::string said = refusal<ConfigError>(*store.open("createTable=on&table=elsewhere"));
  EXPECT_NE(said.find("may create tables in schema public"), said.npos) << said;
  EXPECT_NE(said.find("version.sql"), said.npos) << said;
}

TEST_F(PostgresRefusal, TooManyConnectionsAndAReadOnlyServerPass) {
  store.server.execute("ALTER ROLE keeper CONNECTION LIMIT 0");
  const std::string tooMany = refusal<StoreUnavailable>(*store.open());
  store.server.execute("ALTER ROLE keeper CONNECTION LIMIT -1");
  EXPECT_NE(tooMany.find("53300"), tooMany.npos) << tooMany;
  store.server.execute("ALTER ROLE keeper SET default_transaction_read_only = on");
  const std::string readOnly = refusal<StoreUnavailable>(*store.open());
  store.server.execute("ALTER ROLE keeper RESET default_transaction_read_only");
  EXPECT_NE(readOnly.find("takes no writes"), readOnly.npos) << readOnly;
  EXPECT_TRUE(granted(store.open()->acquire(Claimant{}.request())));
}

// A message of the protocol.
std::string messageOf(char type, const std::string& body) {
  const auto length = static_cast<char>(body.size() + 4);
  return std::string{type, 0, 0, 0, length} + body;
}

TEST_F(PostgresRefusal, AServerThatIsTooOldIsAConfigError) {
  using namespace std::string_literals;
  const auto driver = store.openProxied();
  const std::string greeting = messageOf('R', "\0\0\0\0"s) + messageOf('S', "server_version\00013.5\0"s) +
                               messageOf('K', "\0\0\0\1\0\0\0\1"s) + messageOf('Z', "I");
  store.proxy.set({.kind = ProxyFault::Kind::replace, .text = greeting});
  const std::string said = refusal<ConfigError>(*driver);
  EXPECT_NE(said.find("PostgreSQL 13 is too old"), said.npos) << said;
}

TEST_F(PostgresRefusal, SessionsThatAnOperatorEndsCostNoLock) {
  const auto driver = store.open();
  const Claimant who;
  const AcquireResult first = driver->acquire(who.request());
  ASSERT_TRUE(granted(first));
  store.server.endSessions();
  const AcquireResult again = driver->acquire(who.request(soon(), true));
  ASSERT_TRUE(granted(again));
  EXPECT_EQ(std::get<Granted>(again).fence, std::get<Granted>(first).fence);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(PostgresRefusal, ARoleThatTheAccountSwitchesToIsNotUsed) {
  store.server.execute(
      "DROP ROLE IF EXISTS other_role; CREATE ROLE other_role; GRANT other_role TO keeper; "
      "ALTER ROLE keeper SET role = 'other_role'");
  EXPECT_EQ(refusal<ConfigError>(*store.open()), "granted");
  store.server.execute("ALTER ROLE keeper RESET role; DROP ROLE other_role");
}

TEST_F(PostgresRefusal, ARenewalThatALaterOneHasOvertakenIsNotALoss) {
  const auto driver = store.open();
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  store.server.execute("UPDATE lockkeeper_locks SET asked = 9223372036854775806 WHERE expires_at > now()");
  std::vector<Renewal> renewals{{.claim = who.claim(), .ttl = 1ms}};
  driver->renew(renewals, soon());
  EXPECT_EQ(renewals.front().outcome, RenewOutcome::unknown);
  EXPECT_FALSE(store.isFree(who.key));
}

// Somebody has broken off the wait for a standby: the server says that the commit has succeeded, and warns.
TEST(PostgresRestart, ACommitThatNoStandbyHasIsNotGranted) {
  PostgresServer server;
  server.makeLocks();
  server.execute("ALTER ROLE keeper SET client_min_messages = 'error'");
  const auto driver = openPostgres(server.uri("postgres+version"));
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  server.execute("SELECT pg_reload_conf()");
  std::jthread canceller([&] {
    EXPECT_TRUE(waitUntil([&] {
      return server.ask(
                 "SELECT bool_or(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = "
                 "'SyncRep' AND usename = 'keeper'") == "t";
    }));
  });
  // Until the settings have been read, claims are granted. One without an answer would be in doubt, too.
  const Instant end = soon();
  const std::string said = refusalOf<OutcomeUnknown>([&] {
    while (now() < end) (void)driver->acquire(Claimant{}.request(end));
  });
  EXPECT_NE(said.find("warns"), said.npos) << said;
}

// Its first local holders may have been told their fences.
TEST_F(PostgresRefusal, AClaimThatComesAgainAfterItsEndKeepsItsFence) {
  const auto driver = store.open();
  const Claimant who;
  AcquireRequest request = who.request();
  request.localHolders = 3;
  const AcquireResult first = driver->acquire(request);
  ASSERT_TRUE(granted(first));
  store.server.execute("UPDATE lockkeeper_locks SET expires_at = now() WHERE expires_at > now()");
  const AcquireResult again = driver->acquire(request);
  ASSERT_TRUE(granted(again));
  EXPECT_EQ(std::get<Granted>(again).fence.value(), std::get<Granted>(first).fence.value() + 2);
}

TEST_F(PostgresRefusal, TablesAreMadeWhereThatIsWantedAlsoByManyAtOnce) {
  store.server.execute("DROP SCHEMA IF EXISTS made CASCADE; CREATE SCHEMA made AUTHORIZATION keeper");
  std::vector<std::jthread> threads;
  std::atomic<int> successes = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto driver = store.open("createTable=on&schema=made&table=own");
      if (granted(driver->acquire(Claimant{}.request()))) ++successes;
    });
  }
  threads.clear();
  EXPECT_EQ(successes, 4);
}

// Each of these, as a default of the account, would change what the statements mean or break them off.
TEST_F(PostgresRefusal, DefaultsOfTheAccountChangeNothing) {
  for (const char* setting :
       {"default_transaction_isolation = 'serializable'", "default_transaction_isolation = 'repeatable read'",
        "search_path = ''", "statement_timeout = 100", "lock_timeout = 1",
        "standard_conforming_strings = off", "bytea_output = 'escape'", "synchronous_commit = off",
        "DateStyle = 'German'", "TimeZone = 'Asia/Tokyo'", "client_encoding = 'LATIN1'",
        "IntervalStyle = 'iso_8601'", "client_min_messages = 'error'"}) {
    SCOPED_TRACE(setting);
    store.server.execute(std::string("ALTER ROLE keeper SET ") + setting);
    const std::string key = Claimant{}.key;
    std::atomic<int> inside = 0;
    std::atomic<int> turns = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        LockManager locks(store.open());
        for (int turn = 0; turn < 5; ++turn) {
          const Lock lock = locks.lock(key, {.ttl = 30s, .waitFor = 20s});
          EXPECT_EQ(++inside, 1);
          ++turns;
          --inside;
        }
      });
    }
    threads.clear();
    EXPECT_EQ(turns, 20);
    store.server.execute("ALTER ROLE keeper RESET ALL");
  }
}

TEST_F(PostgresRefusal, OneThatStandsStillInATransactionKeepsNoLockFromOthersForLong) {
  const Claimant who;
  ASSERT_TRUE(granted(store.direct->acquire(who.request())));
  std::jthread keeper([&] {
    store.server.execute("BEGIN; SELECT FROM lockkeeper_locks FOR UPDATE; SELECT pg_sleep(3); COMMIT");
  });
  std::this_thread::sleep_for(500ms);
  const Instant start = now();
  EXPECT_THROW((void)store.direct->release(who.claim(), soon()), StoreUnavailable);
  EXPECT_LT(now() - start, 1s + schedulingSlack);
  keeper.join();
  EXPECT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(PostgresRefusal, TenThousandLocksAreHeldAndRenewedOnFourConnections) {
  constexpr std::size_t calls = 10;
  constexpr std::size_t each = 1000;
  const auto driver = store.open();
  const std::string prefix = Claimant{}.key;
  std::vector<Claimant> holders(calls * each);
  for (std::size_t i = 0; i < holders.size(); ++i) holders[i].key = prefix + std::to_string(100'000 + i);
  std::vector<std::jthread> threads;
  std::atomic<std::size_t> renewed = 0;
  for (std::size_t call = 0; call < calls; ++call) {
    threads.emplace_back([&, call] {
      std::vector<AcquireRequest> requests;
      std::vector<Renewal> renewals;
      for (std::size_t i = call * each; i < (call + 1) * each; ++i) {
        requests.push_back(holders[i].request(in(30s)));
        renewals.push_back({.claim = holders[i].claim(), .ttl = longTtl});
      }
      const auto results = capability<Batchable>(*driver)->acquireInOrder(requests);
      EXPECT_EQ(results.size(), each);
      EXPECT_TRUE(std::ranges::all_of(results, granted));
      driver->renew(renewals, in(30s));
      for (const Renewal& renewal : renewals) renewed += renewal.outcome == RenewOutcome::renewed ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(renewed, holders.size());
  // One more is of the store's own client; those of other tests may still be ending.
  EXPECT_TRUE(waitUntil([this] { return store.server.sessions() <= 4 + 1; }));
}

TEST(PostgresRestart, LocksAndFencesSurviveACrash) {
  PostgresServer server({"fsync=on"});
  server.makeLocks();
  const auto driver = openPostgres(server.uri("postgres+version"));
  const Claimant who;
  const AcquireResult first = driver->acquire(who.request());
  ASSERT_TRUE(granted(first));
  EXPECT_EQ(driver->promises().fence, FencePromise::durable);
  server.kill();
  // Unknown, if it was sent before the end of the session could be seen.
  EXPECT_THROW((void)driver->acquire(Claimant{}.request(in(300ms))), Error);
  server.restart();
  const AcquireResult again = driver->acquire(who.request(soon(), true));
  ASSERT_TRUE(granted(again));
  EXPECT_EQ(std::get<Granted>(again).fence, std::get<Granted>(first).fence);
}

}  // namespace
}  // namespace lockkeeper::test
