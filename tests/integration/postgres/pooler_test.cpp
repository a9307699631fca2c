// Behind PgBouncer in transaction mode, where each transaction may be on another session of the server.

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/postgres/server_rows.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/rows/versioned_row.h"
#include "lockkeeper/store/shared_records.h"
#include "lockkeeper/store_registry.h"
#include "pg_bouncer.h"
#include "postgres_fixture.h"
#include "succeeds_in_the_end.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Between keeper and the server. A driver has been served through it.
class Pooler {
 public:
  explicit Pooler(std::uint16_t server) : bouncer_("keeper", "locks", server) {
    const auto driver = openPostgres(uri(), "connectTimeout=10s");
    EXPECT_TRUE(waitUntil([&] {
      try {
        return granted(driver->acquire(Claimant{}.request()));
      } catch (const StoreUnavailable&) {
        return false;
      }
    })) << bouncer_.log();
  }

  std::string uri() const { return PostgresServer::uri("postgres+version", port()); }
  std::uint16_t port() const { return bouncer_.port; }

 private:
  const PgBouncer bouncer_;
};

class PostgresPooler : public PostgresTest {
 protected:
  Pooler pooler{store.server.port()};
};

TEST_F(PostgresPooler, OneHolderAtATimeWhateverTheServersIsolationIs) {
  for (const char* isolation : {"read committed", "serializable"}) {
    SCOPED_TRACE(isolation);
    store.server.execute(std::string("ALTER ROLE keeper SET default_transaction_isolation = '") + isolation +
                         "'");
    store.server.endSessions();
    const std::string key = Claimant{}.key;
    std::atomic<int> inside = 0;
    std::atomic<int> turns = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        LockManager locks(openPostgres(pooler.uri(), "connectTimeout=10s"));
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

TEST_F(PostgresPooler, SharesAreRenewedAndReleased) {
  LockManager locks(openPostgres(pooler.uri(), "connectTimeout=10s"));
  const std::string key = Claimant{}.key;
  auto first = locks.lockShared(key, {.ttl = 30s});
  auto second = locks.lockShared(key, {.ttl = 30s});
  EXPECT_NO_THROW(first.renew());
  EXPECT_FALSE(locks.tryLock(key));
  EXPECT_EQ(first.release(), ReleaseResult::released);
  EXPECT_EQ(second.release(), ReleaseResult::released);
  EXPECT_TRUE(locks.tryLock(key));
}

TEST_F(PostgresPooler, ACrowdGetsExactlyTheLimit) {
  const RatePolicy policy("p", {.rate = {50, 24h}});
  const std::string key = Claimant{}.key;
  std::atomic<std::int64_t> allowed = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto driver = openPostgres(pooler.uri(), "connectTimeout=10s");
      for (int call = 0; call < 20; ++call) {
        RateCharge charge{.key = key, .law = &policy.law()};
        capability<RateDriver>(*driver)->take({&charge, 1}, in(30s));
        allowed += charge.outcome.granted;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(allowed, 50);
}

TEST_F(PostgresPooler, ValuesAndRecordsAreKept) {
  StoreRegistry registry;
  postgres::use(registry);
  const auto values = registry.openValues(pooler.uri() + "?connectTimeout=10s");
  const std::string key = Claimant{}.key;
  EXPECT_TRUE(values->add(key, "1", 1h, soon()));
  EXPECT_FALSE(values->add(key, "2", 1h, soon()));
  EXPECT_EQ(values->get(key, soon()), "1");
  const auto driver = openPostgres(pooler.uri(), "connectTimeout=10s");
  auto& records = *capability<SharedRecords>(*driver);
  EXPECT_TRUE(records.write(key, "member", "1", 1min, {}, soon()).empty());
  EXPECT_FALSE(records.replace(key, "rules", std::nullopt, "2", std::array{KnownRecord{"other"}}, soon()));
  EXPECT_TRUE(records.replace(key, "rules", std::nullopt, "2", {}, soon()));
  EXPECT_EQ(records.read(key, soon()).size(), 2U);
}

TEST_F(PostgresPooler, TransactionsOfRowsHoldTogether) {
  store.server.execute(
      "DROP TABLE IF EXISTS accounts; CREATE TABLE accounts (iban TEXT PRIMARY KEY, balance BIGINT, version "
      "BIGINT NOT NULL DEFAULT 0); INSERT INTO accounts VALUES ('DE1', 0); GRANT SELECT, UPDATE ON accounts "
      "TO "
      "keeper");
  postgres::ServerRows rows(
      StoreUri::parse(pooler.uri().replace(0, sizeof("postgres+version") - 1, "postgres")),
      {.operationTimeout = 15s});
  const VersionedRow accounts({.name = "accounts", .key = "iban", .columns = {"balance"}},
                              {.attempts = 1000});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        EXPECT_EQ(accounts.update(rows, "DE1",
                                  [](const SqlRow& row, postgres::ServerRows::Transaction&) {
                                    return std::optional(SqlRow{std::get<std::int64_t>(row[0]) + 1});
                                  }),
                  RowOutcome::committed);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(store.server.ask("SELECT balance FROM accounts"), "40");
}

// What we set for our transactions must not reach those of others, who use the same sessions.
TEST_F(PostgresPooler, OthersOnTheSameSessionsKeepTheirSettings) {
  const auto driver = openPostgres(pooler.uri(), "connectTimeout=10s");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  const auto shown =
      runToEnd({"psql", "-X", "-A", "-t", "-c",
                "SELECT current_setting('lock_timeout') || current_setting('statement_timeout') || "
                "current_setting('search_path')",
                pooler.uri().replace(0, sizeof("postgres+version") - 1, "postgres")},
               {.environment = {{"PGSSLMODE", "disable"}}});
  EXPECT_EQ(shown.output, "00\"$user\", public\n") << shown.errors;
}

// Nobody can end the session of the server on which it comes.
TEST_F(PostgresPooler, AClaimThatWasWithdrawnTakesNothing) {
  FaultProxy proxy(pooler.port());
  const auto proxied =
      openPostgres(PostgresServer::uri("postgres+version", proxy.port()), "connectTimeout=10s");
  ASSERT_TRUE(granted(proxied->acquire(Claimant{}.request())));
  for (const std::optional<Share> share : {std::optional<Share>(), std::optional(Share{1, 2})}) {
    Claimant who;
    who.share = share;
    proxy.set({.kind = ProxyFault::Kind::hold, .text = "ON CONFLICT (lock_key"});
    const Instant deadline = in(500ms);
    {
      const std::jthread ending([&] {
        if (waitUntil([&] { return proxy.fired() > 0; })) proxy.endHeldConnections(Ending::rst);
      });
      EXPECT_THROW((void)proxied->acquire(who.request(deadline)), OutcomeUnknown);
    }
    EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
    ASSERT_TRUE(waitUntil([&] { return now() > deadline; }));
    EXPECT_TRUE(proxy.deliverHeld());
    EXPECT_TRUE(store.isFree(who.key));
    ASSERT_TRUE(granted(proxied->acquire(who.request())));
  }
}

TEST_F(PostgresPooler, AWriteThatWasGivenUpChangesNoLaterValue) {
  FaultProxy proxy(pooler.port());
  StoreRegistry registry;
  postgres::use(registry);
  const auto values =
      registry.openValues(PostgresServer::uri("postgres+version", proxy.port()) + "?connectTimeout=10s");
  const auto giveUp = [&](const char* text, auto call) {
    proxy.set({.kind = ProxyFault::Kind::hold, .text = text});
    const Instant deadline = in(500ms);
    {
      const std::jthread ending([&] {
        if (waitUntil([&] { return proxy.fired() > 0; })) proxy.endHeldConnections(Ending::rst);
      });
      EXPECT_THROW(call(deadline), OutcomeUnknown);
    }
    return deadline;
  };
  const auto arrivesAfter = [&](Instant deadline) {
    ASSERT_TRUE(waitUntil([&] { return now() > deadline; }));
    EXPECT_TRUE(proxy.deliverHeld());
    // What is sent after it is carried out after it, or waits for its row.
    EXPECT_FALSE(values->get("other", soon()));
  };
  values->put("k", "old", 1h, soon());
  Instant late = giveUp("ON CONFLICT (value_key", [&](Instant end) { values->put("k", "late", 1h, end); });
  values->put("k", "new", 1h, soon());
  arrivesAfter(late);
  EXPECT_EQ(values->get("k", soon()), "new");
  late = giveUp("DELETE FROM", [&](Instant end) { (void)values->erase("k", end); });
  arrivesAfter(late);
  EXPECT_EQ(values->get("k", soon()), "new");
  EXPECT_TRUE(values->erase("k", soon()));
  late = giveUp("ON CONFLICT (value_key", [&](Instant end) { (void)values->add("k", "late", 1h, end); });
  arrivesAfter(late);
  EXPECT_FALSE(values->get("k", soon()));
}

// The pooler goes on with another server, and its clients do not notice.
TEST(PostgresPoolerOfTwo, AStandbyAnswersNothing) {
  PostgresServer primary{{"wal_level=replica"}};
  primary.makeLocks();
  const PostgresServer standby{primary, {"hot_standby=on"}};
  FaultProxy way(primary.port());
  const Pooler pooler(way.port());
  const auto driver = openPostgres(pooler.uri(), "connectTimeout=10s");
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  way.leadTo(standby.port());
  way.endConnections(Ending::fin);
  EXPECT_THROW((void)driver->holder(who.key, soon()), StoreUnavailable);
  way.leadTo(primary.port());
  way.endConnections(Ending::fin);
  succeedsInTheEnd([&] { EXPECT_TRUE(driver->holder(who.key, soon())); });
}

}  // namespace
}  // namespace lockkeeper::test
