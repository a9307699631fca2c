// VersionedRow on an application's own table, by sessions of lockkeeper's own.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "lockkeeper/error.h"
#include "lockkeeper/postgres/row_statement.h"
#include "lockkeeper/postgres/server_rows.h"
#include "lockkeeper/rows/versioned_row.h"
#include "lockkeeper/store_uri.h"
#include "postgres_fixture.h"
#include "refusal.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using postgres::ServerRows;

class PostgresRows : public PostgresTest {
 protected:
  PostgresRows() {
    store.server.execute(
        "DROP TABLE IF EXISTS accounts, ledger; CREATE TABLE accounts (iban TEXT PRIMARY KEY, balance "
        "BIGINT, "
        "\"order\" TEXT, rate DOUBLE PRECISION, photo BYTEA, revision INTEGER NOT NULL DEFAULT 0); CREATE "
        "TABLE "
        "ledger (amount BIGINT); INSERT INTO accounts (iban, balance) VALUES ('DE1', 0); GRANT SELECT, "
        "INSERT, "
        "UPDATE ON accounts, ledger TO keeper");
  }

  static ServerRows open(std::uint16_t port, std::chrono::seconds operationTimeout = 15s) {
    return ServerRows(StoreUri::parse(PostgresServer::uri("postgres", port)),
                      {.operationTimeout = operationTimeout});
  }
  std::string balance() const { return store.server.ask("SELECT balance FROM accounts"); }

  ServerRows rows = open(store.server.port());
  const VersionedRow accounts{
      {.name = "accounts", .key = "iban", .columns = {"balance"}, .version = "revision"}, {.attempts = 1000}};
};

std::optional<SqlRow> oneMore(const SqlRow& row, ServerRows::Transaction& transaction) {
  // A further row in the same transaction.
  transaction.execute("INSERT INTO ledger (amount) VALUES (?)", {std::int64_t{1}});
  return SqlRow{std::get<std::int64_t>(row[0]) + 1};
}

TEST_F(PostgresRows, LoseNoUpdateAndWriteFurtherRowsWithIt) {
  constexpr int threadCount = 8;
  constexpr int rounds = 25;
  std::atomic<int> others{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < threadCount; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        if (accounts.update(rows, "DE1", oneMore) != RowOutcome::committed) ++others;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(others, 0);
  EXPECT_EQ(balance(), std::to_string(threadCount * rounds));
  EXPECT_EQ(store.server.ask("SELECT revision FROM accounts"), std::to_string(threadCount * rounds));
  EXPECT_EQ(store.server.ask("SELECT count(*) FROM ledger"), std::to_string(threadCount * rounds))
      << "what a failed attempt has written besides is gone with it";
  // Those of other tests may still be ending.
  EXPECT_TRUE(waitUntil([this] { return store.server.sessions() <= 8; }));
}

TEST_F(PostgresRows, AnswerConflictWhenTheRowNeverStandsStill) {
  const VersionedRow impatient(
      {.name = "accounts", .key = "iban", .columns = {"balance"}, .version = "revision"}, {.attempts = 3});
  int attempts = 0;
  const auto overtaken = [&](const SqlRow& row, ServerRows::Transaction& transaction) {
    ++attempts;
    store.server.execute("UPDATE accounts SET balance = balance + 100, revision = revision + 1");
    return oneMore(row, transaction);
  };
  EXPECT_EQ(impatient.update(rows, "DE1", overtaken), RowOutcome::conflict);
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(balance(), "300");
  EXPECT_EQ(store.server.ask("SELECT count(*) FROM ledger"), "0");
  EXPECT_EQ(impatient.update(rows, "DE2", oneMore), RowOutcome::notFound);
}

TEST_F(PostgresRows, CarryValuesOfEveryKindUnharmed) {
  const VersionedRow all({.name = "accounts",
                          .key = "iban",
                          .columns = {"balance", "order", "rate", "photo"},
                          .version = "revision"});
  const SqlRow written{std::int64_t{-9'000'000'000'000'000'000}, "O'Hara\\`; DROP TABLE accounts --?\"", 0.1,
                       "\\x00ff27"};
  SqlRow seen;
  const auto replace = [&](const SqlRow& by) {
    return all.update(rows, "DE1", [&](const SqlRow& row, ServerRows::Transaction&) {
      seen = row;
      return std::optional(by);
    });
  };
  EXPECT_EQ(replace(written), RowOutcome::committed);
  EXPECT_EQ(seen, (SqlRow{std::int64_t{0}, {}, {}, {}})) << "NULL where nothing was set";
  // Settings of the account that decide how values are written.
  store.server.execute(
      "ALTER ROLE keeper SET extra_float_digits = -15; ALTER ROLE keeper SET bytea_output = 'escape'");
  store.server.endSessions();
  EXPECT_EQ(replace({{}, {}, {}, {}}), RowOutcome::committed);
  EXPECT_EQ(seen, written);
  EXPECT_EQ(store.server.ask("SELECT count(*) FROM accounts WHERE \"order\" IS NULL AND balance IS NULL"),
            "1");
  store.server.execute("ALTER ROLE keeper RESET ALL");
}

TEST_F(PostgresRows, KeepEachDigitAndEachMicrosecond) {
  store.server.execute(
      "DROP TABLE IF EXISTS prices; CREATE TABLE prices (id INTEGER PRIMARY KEY, price NUMERIC(20,2), since "
      "TIMESTAMPTZ, took INTERVAL, who UUID, version BIGINT NOT NULL DEFAULT 0); INSERT INTO prices VALUES "
      "(1, "
      "123456789012345678.91, '2026-10-25 02:30:00.123456+00', '01:02:03.000004', "
      "'00112233-4455-6677-8899-aabbccddeeff'); GRANT SELECT, UPDATE ON prices TO keeper; "
      "ALTER ROLE keeper SET DateStyle = 'German'; ALTER ROLE keeper SET TimeZone = 'Asia/Tokyo'; "
      "ALTER ROLE keeper SET IntervalStyle = 'iso_8601'");
  const VersionedRow prices({.name = "prices", .key = "id", .columns = {"price", "since", "took", "who"}});
  SqlRow seen;
  EXPECT_EQ(prices.update(rows, std::int64_t{1},
                          [&](const SqlRow& row, ServerRows::Transaction&) {
                            seen = row;
                            return std::optional(row);
                          }),
            RowOutcome::committed);
  EXPECT_EQ(seen, (SqlRow{"123456789012345678.91", "2026-10-25 02:30:00.123456+00", "01:02:03.000004",
                          "00112233-4455-6677-8899-aabbccddeeff"}));
  EXPECT_EQ(
      store.server.ask("SELECT count(*) FROM prices WHERE price = 123456789012345678.91 AND version = 1 "
                       "AND since = '2026-10-25 02:30:00.123456+00' AND took = '01:02:03.000004'"),
      "1")
      << "what was written back is what was read";
  store.server.execute("ALTER ROLE keeper RESET ALL");
}

TEST_F(PostgresRows, ATransactionThatHasFailedTakesNothingMore) {
  auto transaction = rows.begin();
  transaction.execute("INSERT INTO ledger (amount) VALUES (?)", {std::int64_t{1}});
  EXPECT_THROW(transaction.execute("INSERT INTO ledger (amount) VALUES (?)", {}), std::invalid_argument)
      << "nothing was sent";
  EXPECT_THROW(transaction.execute("INSERT INTO ledger (amount) VALUES (?)", {std::string("1\0", 2)}),
               std::invalid_argument);
  EXPECT_EQ(transaction.selectAll("SELECT amount FROM ledger", {}), (std::vector<SqlRow>{{std::int64_t{1}}}));
  EXPECT_THROW(transaction.execute("INSERT INTO accounts (iban) VALUES ('DE1')", {}), Error) << "it is there";
  EXPECT_THROW(transaction.execute("INSERT INTO ledger (amount) VALUES (2)", {}), StoreUnavailable);
  EXPECT_THROW(transaction.commit(), StoreUnavailable);
  EXPECT_EQ(store.server.ask("SELECT count(*) FROM ledger"), "0");
}

TEST_F(PostgresRows, ARowThatSomebodyElseHasIsWaitedForBrieflyAndIsContention) {
  ServerRows impatient = open(store.server.port(), 1s);
  auto first = rows.begin();
  first.execute("UPDATE accounts SET balance = 1", {});
  auto second = impatient.begin();
  try {
    second.execute("UPDATE accounts SET balance = 2", {});
    FAIL() << "the row was free";
  } catch (const StoreUnavailable& failure) {
    EXPECT_TRUE(ServerRows::isContention(failure)) << failure.what();
  }
  first.commit();
  EXPECT_EQ(balance(), "1");
}

TEST_F(PostgresRows, OneWhoStandsStillInATransactionKeepsItsRowsForTheOperationTimeout) {
  ServerRows brief = open(store.server.port(), 1s);
  auto silent = brief.begin();
  silent.execute("UPDATE accounts SET balance = 5", {});
  EXPECT_EQ(accounts.update(rows, "DE1", oneMore), RowOutcome::committed) << "waits for the row";
  EXPECT_THROW(silent.commit(), StoreUnavailable);
  EXPECT_EQ(balance(), "1");
}

TEST_F(PostgresRows, ALostAnswerIsADoubtOnlyToACommit) {
  ServerRows proxied = open(store.proxy.port());
  const auto cut = [&](auto call) {
    auto transaction = proxied.begin();
    transaction.execute("UPDATE accounts SET balance = balance + 1", {});
    store.proxy.cutReplies(0, Ending::rst);
    call(transaction);
    store.proxy.passThrough();
  };
  cut([](auto& transaction) {
    EXPECT_THROW(transaction.select("SELECT balance FROM accounts", {}), StoreUnavailable);
    EXPECT_THROW(transaction.commit(), StoreUnavailable);
  });
  EXPECT_EQ(balance(), "0");
  cut([](auto& transaction) { EXPECT_THROW(transaction.commit(), OutcomeUnknown); });
}

TEST_F(PostgresRows, InheritedOnesTouchNoSocket) {
  EXPECT_EQ(accounts.update(rows, "DE1", oneMore), RowOutcome::committed);
  const int failedCheck = inForkedChild([&] { return throwsForked([&] { (void)rows.begin(); }) ? 0 : 1; });
  EXPECT_EQ(failedCheck, 0);
  EXPECT_EQ(accounts.update(rows, "DE1", oneMore), RowOutcome::committed);
}

TEST_F(PostgresRows, AChildLeavesATransactionToItsParent) {
  std::optional transaction(rows.begin());
  transaction->execute("UPDATE accounts SET balance = 7", {});
  const int failedCheck = inForkedChild([&] {
    if (!throwsForked([&] { (void)transaction->select("SELECT 1", {}); })) return 1;
    if (!throwsForked([&] { (void)transaction->execute("DELETE FROM ledger", {}); })) return 2;
    if (!throwsForked([&] { transaction->commit(); })) return 3;
    transaction.reset();
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  transaction->execute("UPDATE accounts SET balance = balance + 1", {});
  transaction->commit();
  EXPECT_EQ(balance(), "8");
}

TEST_F(PostgresRows, ACopyIsRefusedInTime) {
  auto transaction = rows.begin();
  EXPECT_THROW(transaction.execute("COPY accounts TO STDOUT", {}), Error);
  auto another = rows.begin();
  another.select("SELECT balance FROM accounts", {});
  EXPECT_THROW(another.execute("COPY accounts FROM STDIN", {}), Error);
}

TEST(PostgresRowOptions, OfWrongValuesAreNamed) {
  const auto refused = [](const std::string& query, const postgres::ServerRowsOptions& options) {
    return refusalOf(
        [&] { const ServerRows rows(StoreUri::parse("postgres://ann:secret@h/shop" + query), options); });
  };
  EXPECT_EQ(refused("", {.sessions = 0}), "sessions is 0: 1 to 256 are allowed");
  EXPECT_EQ(refused("", {.operationTimeout = 0s}), "operationTimeout is 0s: it must be 1s to 15s");
  EXPECT_EQ(refused("", {.operationTimeout = std::chrono::seconds::max()}),
            "operationTimeout is 9223372036854775807s: it must be 1s to 15s");
  EXPECT_EQ(refused("?schema=shop", {.sessions = 256, .operationTimeout = 15s}), "accepted");
  EXPECT_THROW(ServerRows(StoreUri::parse("postgres://ann:secret@h/shop?connections=2")), ConfigError);
}

TEST(PostgresRowStatement, HasNumbersAndTheServersQuotes) {
  EXPECT_EQ(postgres::numbered("UPDATE `t?` SET `a` = ?, b = '`?' || \"c`?\" WHERE d = ?::int", 2),
            "UPDATE \"t?\" SET \"a\" = $1, b = '`?' || \"c`?\" WHERE d = $2::int");
  EXPECT_EQ(postgres::numbered("SELECT 'it''s?'", 0), "SELECT 'it''s?'");
  // A backslash is one in a text, except where an E says otherwise.
  EXPECT_EQ(postgres::numbered("SELECT '\\', ?, E'it\\'s \\\\', ?, ae'\\', ?", 3),
            "SELECT '\\', $1, E'it\\'s \\\\', $2, ae'\\', $3");
  // Comments, which may be in each other.
  EXPECT_EQ(postgres::numbered("-- isn't it `?\nSELECT ?, 1-?/*?/*'*/`?*/, ?--", 3),
            "-- isn't it `?\nSELECT $1, 1-$2/*?/*'*/`?*/, $3--");
  EXPECT_EQ(postgres::numbered("SELECT ?, $$it's ?$$, $a$ $$ ?$a$, ?, $1, a$b$ ?", 3),
            "SELECT $1, $$it's ?$$, $a$ $$ ?$a$, $2, $1, a$b$ $3");
  EXPECT_THROW((void)postgres::numbered("SELECT ?", 0), std::invalid_argument);
  EXPECT_THROW((void)postgres::numbered("SELECT 1", 1), std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::test
