// VersionedRow on an application's own table and sessions of Poco::Data.

#include "lockkeeper/postgres/poco_rows.h"

#include <Poco/Data/PostgreSQL/Connector.h>
#include <Poco/Data/PostgreSQL/PostgreSQLException.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/rows/versioned_row.h"
#include "postgres_fixture.h"

namespace lockkeeper::test {
namespace {

using postgres::PocoRows;
using postgres::PocoRowTransaction;

class PostgresPocoRows : public PostgresTest {
 protected:
  PostgresPocoRows() {
    static const bool isRegistered = (Poco::Data::PostgreSQL::Connector::registerConnector(), true);
    static_cast<void>(isRegistered);
    store.server.execute(
        "DROP TABLE IF EXISTS visits, counts; CREATE TABLE visits (id BIGINT PRIMARY KEY, hits BIGINT, "
        "\"order\" "
        "TEXT, rate DOUBLE PRECISION, photo BYTEA, price NUMERIC(20,2), since TIMESTAMPTZ, day DATE, who "
        "UUID, "
        "version INTEGER NOT NULL DEFAULT 0); CREATE TABLE counts (amount BIGINT); INSERT INTO visits (id, "
        "hits) "
        "VALUES (1, 0); GRANT SELECT, INSERT, UPDATE ON visits, counts TO keeper");
  }

  Poco::Data::Session session() const {
    return Poco::Data::Session("PostgreSQL", "host=127.0.0.1 port=" + std::to_string(store.server.port()) +
                                                 " user=keeper password=" + PostgresServer::password +
                                                 " dbname=locks sslmode=disable");
  }
  static void execute(Poco::Data::Session& sql, const std::string& statement) {
    sql << statement, Poco::Data::Keywords::now;
  }
  std::string hits() const { return store.server.ask("SELECT hits FROM visits"); }

  const SqlValue one = std::int64_t{1};
  const VersionedRow visits{{.name = "visits", .key = "id", .columns = {"hits"}}, {.attempts = 1000}};
};

std::optional<SqlRow> oneVisitMore(const SqlRow& row, PocoRowTransaction& transaction) {
  // A further row in the same transaction.
  transaction.execute("INSERT INTO counts (amount) VALUES (?)", {std::int64_t{1}});
  return SqlRow{std::get<std::int64_t>(row[0]) + 1};
}

TEST_F(PostgresPocoRows, LoseNoUpdate) {
  constexpr int threadCount = 4;
  constexpr int rounds = 25;
  for (const std::string level : {"READ COMMITTED", "REPEATABLE READ"}) {
    SCOPED_TRACE(level);
    std::atomic<int> others{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < threadCount; ++i) {
        threads.emplace_back([&] {
          Poco::Data::Session mine = session();
          execute(mine, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL " + level);
          PocoRows rows(mine);
          for (int round = 0; round < rounds; ++round) {
            if (visits.update(rows, one, oneVisitMore) != RowOutcome::committed) ++others;
          }
        });
      }
    }
    EXPECT_EQ(others, 0);
    EXPECT_EQ(hits(), std::to_string(threadCount * rounds));
    EXPECT_EQ(store.server.ask("SELECT count(*) FROM counts"), std::to_string(threadCount * rounds))
        << "what a failed attempt has written besides is gone with it";
    store.server.execute("UPDATE visits SET hits = 0; DELETE FROM counts");
  }
}

TEST_F(PostgresPocoRows, CarryValuesOfEveryKindUnharmed) {
  const VersionedRow all({.name = "visits",
                          .key = "id",
                          .columns = {"hits", "order", "rate", "photo", "price", "since", "day", "who"}});
  store.server.execute("ALTER ROLE keeper SET TimeZone = 'UTC'");
  PocoRows rows(session());
  const SqlRow written{std::int64_t{-9'000'000'000'000'000'000},
                       "O'Hara\\`; DROP TABLE visits --?\"",
                       0.1,
                       "\\x00ff27",
                       "123456789012345678.91",
                       "2026-10-25 02:30:00.123456+00",
                       "2026-10-25",
                       "00112233-4455-6677-8899-aabbccddeeff"};
  SqlRow seen;
  const auto replace = [&](const SqlRow& by) {
    return all.update(rows, one, [&](const SqlRow& row, PocoRowTransaction&) {
      seen = row;
      return std::optional(by);
    });
  };
  EXPECT_EQ(replace(written), RowOutcome::committed);
  EXPECT_EQ(seen, (SqlRow{std::int64_t{0}, {}, {}, {}, {}, {}, {}, {}})) << "NULL where nothing was set";
  EXPECT_EQ(replace({{}, {}, {}, {}, {}, {}, {}, {}}), RowOutcome::committed);
  EXPECT_EQ(seen, written);
  EXPECT_EQ(store.server.ask("SELECT count(*) FROM visits WHERE hits IS NULL AND who IS NULL"), "1");
  store.server.execute("ALTER ROLE keeper RESET ALL");
}

TEST_F(PostgresPocoRows, AFailureIsNotCommittedAndTheSessionGoesOn) {
  Poco::Data::Session mine = session();
  PocoRows rows(mine);
  {
    auto transaction = rows.begin();
    transaction.execute("INSERT INTO counts (amount) VALUES (?)", {std::int64_t{1}});
    EXPECT_THROW(transaction.execute("INSERT INTO visits (id) VALUES (1)", {}), Poco::Exception);
    EXPECT_THROW(transaction.commit(), Poco::Exception) << "the server would answer it, and roll back";
  }
  EXPECT_EQ(visits.update(rows, one, oneVisitMore), RowOutcome::committed);
  EXPECT_EQ(store.server.ask("SELECT count(*) FROM counts"), "1");
  execute(mine, "UPDATE visits SET hits = hits + 1");
  EXPECT_EQ(hits(), "2") << "outside of a transaction";
}

TEST_F(PostgresPocoRows, ReadDecimalsByStatementsThatEndWithAComment) {
  PocoRows rows(session());
  auto transaction = rows.begin();
  EXPECT_EQ(transaction.select("SELECT 1.5 AS price -- of ?", {}), (SqlRow{1.5}));
}

// The server answers a COMMIT as if nothing were wrong, and rolls back.
TEST_F(PostgresPocoRows, AFailureThatTheApplicationPassesOverIsNotCommitted) {
  PocoRows rows(session());
  {
    auto transaction = rows.begin();
    transaction.execute("INSERT INTO counts (amount) VALUES (?)", {std::int64_t{1}});
    EXPECT_THROW(execute(transaction.session(), "INSERT INTO visits (id) VALUES (1)"), Poco::Exception);
    EXPECT_THROW(transaction.commit(), Poco::Exception);
  }
  {
    auto transaction = rows.begin();
    execute(transaction.session(), "INSERT INTO counts (amount) VALUES (2)");
    transaction.commit();
  }
  EXPECT_EQ(store.server.ask("SELECT sum(amount) FROM counts"), "2");
}

TEST_F(PostgresPocoRows, ARowThatSomebodyElseHasIsContention) {
  Poco::Data::Session mine = session();
  execute(mine, "SET lock_timeout = '100ms'");
  PocoRows first(session());
  PocoRows second(mine);
  auto holder = first.begin();
  holder.execute("UPDATE visits SET hits = 1", {});
  auto waiter = second.begin();
  try {
    waiter.execute("UPDATE visits SET hits = 2", {});
    FAIL() << "the row was free";
  } catch (const Poco::Exception& failure) {
    EXPECT_TRUE(PocoRows::isContention(failure)) << failure.message();
  }
}

TEST(PostgresPocoContention, IsToldByTheStateInTheText) {
  EXPECT_TRUE(postgres::tellsContention("x Severity: ERROR State: 40001 Detail: N/A"));
  EXPECT_TRUE(postgres::tellsContention("x Severity: ERROR State: 40P01 Detail: N/A"));
  EXPECT_FALSE(postgres::tellsContention("x Severity: ERROR State: 23505 Detail: N/A"));
  EXPECT_FALSE(postgres::tellsContention("40001"));
  EXPECT_FALSE(postgres::tellsContention(" State: "));
}

}  // namespace
}  // namespace lockkeeper::test
