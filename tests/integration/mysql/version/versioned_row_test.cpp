// VersionedRow on an application's own table and sessions of Poco.

#include "lockkeeper/mysql/versioned_row.h"

#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "lockkeeper/error.h"
#include "lockkeeper/mysql/poco_rows.h"
#include "lockkeeper/mysql/server_rows.h"
#include "lockkeeper/store_uri.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using mysql::PocoRows;
using mysql::PocoRowTransaction;
using mysql::RowOutcome;
using mysql::SqlRow;
using mysql::SqlValue;
using mysql::VersionedRow;

class VersionedRowOnServer : public VersionTest {
 protected:
  VersionedRowOnServer() {
    execute(sql,
            "CREATE TABLE accounts (iban VARCHAR(40) PRIMARY KEY, balance BIGINT, owner VARCHAR(100), rate "
            "DOUBLE, "
            "photo VARBINARY(10), revision BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB");
    execute(sql, "CREATE TABLE ledger (id BIGINT AUTO_INCREMENT PRIMARY KEY, amount BIGINT) ENGINE = InnoDB");
    execute(sql, "INSERT INTO accounts (iban, balance) VALUES ('DE1', 0)");
  }

  static void execute(Poco::Data::Session& session, const std::string& statement) {
    session << statement, Poco::Data::Keywords::now;
  }

  Poco::Data::Session sql = store.session();
  const VersionedRow accounts{
      {.name = "accounts", .key = "iban", .columns = {"balance"}, .version = "revision"}, {.attempts = 1000}};
};

std::optional<SqlRow> oneMore(const SqlRow& row, PocoRowTransaction& transaction) {
  // A further row in the same transaction.
  transaction.execute("INSERT INTO ledger (amount) VALUES (?)", {std::int64_t{1}});
  return SqlRow{std::get<std::int64_t>(row[0]) + 1};
}

TEST_P(VersionedRowOnServer, LosesNoUpdateAndWritesFurtherRowsWithIt) {
  constexpr int threadCount = 8;
  constexpr int rounds = 25;
  for (const std::string level : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    SCOPED_TRACE(level);
    std::atomic<int> others{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < threadCount; ++i) {
        threads.emplace_back([&] {
          Poco::Data::Session mine = store.session();
          execute(mine, "SET SESSION TRANSACTION ISOLATION LEVEL " + level);
          PocoRows rows(mine);
          for (int round = 0; round < rounds; ++round) {
            if (accounts.update(rows, "DE1", oneMore) != RowOutcome::committed) ++others;
          }
        });
      }
    }
    EXPECT_EQ(others, 0);
    EXPECT_EQ(store.ask("SELECT balance FROM accounts"), std::to_string(threadCount * rounds));
    EXPECT_EQ(store.ask("SELECT revision FROM accounts"), std::to_string(threadCount * rounds));
    EXPECT_EQ(store.ask("SELECT COUNT(*) FROM ledger"), std::to_string(threadCount * rounds))
        << "what a failed attempt has written besides is gone with it";
    execute(sql, "UPDATE accounts SET balance = 0, revision = 0");
    execute(sql, "DELETE FROM ledger");
  }
}

TEST_P(VersionedRowOnServer, AnswersConflictWhenTheRowNeverStandsStill) {
  const VersionedRow impatient(
      {.name = "accounts", .key = "iban", .columns = {"balance"}, .version = "revision"}, {.attempts = 3});
  PocoRows rows(store.session());
  int attempts = 0;
  const auto overtaken = [&](const SqlRow& row, PocoRowTransaction& transaction) {
    ++attempts;
    execute(sql, "UPDATE accounts SET balance = balance + 100, revision = revision + 1");
    return oneMore(row, transaction);
  };
  EXPECT_EQ(impatient.update(rows, "DE1", overtaken), RowOutcome::conflict);
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(store.ask("SELECT balance FROM accounts"), "300");
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM ledger"), "0");
  EXPECT_EQ(impatient.update(rows, "DE2", oneMore), RowOutcome::notFound);
}

TEST_P(VersionedRowOnServer, CarriesValuesOfEveryKindUnharmed) {
  const VersionedRow all({.name = "accounts",
                          .key = "iban",
                          .columns = {"balance", "owner", "rate", "photo"},
                          .version = "revision"});
  PocoRows rows(store.session());
  const SqlRow written{std::int64_t{-9'000'000'000'000'000'000},
                       std::string("O'Hara\\`; DROP TABLE accounts"), 0.1, std::string("\0\xff'", 3)};
  SqlRow seen;
  EXPECT_EQ(all.update(rows, "DE1",
                       [&](const SqlRow& row, PocoRowTransaction&) {
                         seen = row;
                         return std::optional(written);
                       }),
            RowOutcome::committed);
  EXPECT_EQ(seen, (SqlRow{std::int64_t{0}, {}, {}, {}})) << "NULL where nothing was set";
  EXPECT_EQ(all.update(rows, "DE1",
                       [&](const SqlRow& row, PocoRowTransaction&) {
                         seen = row;
                         return std::optional(SqlRow{{}, {}, {}, {}});
                       }),
            RowOutcome::committed);
  EXPECT_EQ(seen, written);
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM accounts WHERE owner IS NULL AND balance IS NULL"), "1");
}

TEST_P(VersionedRowOnServer, KeepsEachDigitAndEachMicrosecond) {
  execute(sql,
          "CREATE TABLE prices (id BIGINT PRIMARY KEY, price DECIMAL(20,2), since DATETIME(6), took TIME(6), "
          "share "
          "DOUBLE, version BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB");
  execute(sql,
          "INSERT INTO prices VALUES (1, 123456789012345678.91, '2026-10-25 02:30:00.123456', "
          "'01:02:03.000004', 0.1, "
          "0)");
  const VersionedRow prices({.name = "prices", .key = "id", .columns = {"price", "since", "took", "share"}});
  PocoRows rows(store.session());
  SqlRow seen;
  EXPECT_EQ(prices.update(rows, std::int64_t{1},
                          [&](const SqlRow& row, PocoRowTransaction&) {
                            seen = row;
                            return std::optional(row);
                          }),
            RowOutcome::committed);
  EXPECT_EQ(seen, (SqlRow{std::string("123456789012345678.91"), std::string("2026-10-25 02:30:00.123456"),
                          std::string("01:02:03.000004"), 0.1}));
  EXPECT_EQ(
      store.ask("SELECT COUNT(*) FROM prices WHERE price = 123456789012345678.91 AND version = 1 AND since = "
                "'2026-10-25 02:30:00.123456' AND took = '01:02:03.000004'"),
      "1")
      << "what was written back is what was read";
}

TEST_P(VersionedRowOnServer, TakesAStatementsFirstRowForNoOther) {
  execute(sql, "CREATE TABLE visits (id BIGINT PRIMARY KEY, at DATETIME(6)) ENGINE = InnoDB");
  execute(sql,
          "INSERT INTO visits VALUES (1, '2026-01-01 00:00:00.000001'), (2, '2026-01-02 00:00:00.000002')");
  PocoRows rows(store.session());
  auto transaction = rows.begin();
  const std::string latest = "SELECT at FROM visits ORDER BY at DESC";
  EXPECT_THROW(transaction.select(latest, {}), Poco::InvalidArgumentException);
  EXPECT_EQ(transaction.select(latest + " LIMIT 1", {}), SqlRow{std::string("2026-01-02 00:00:00.000002")});
  EXPECT_EQ(transaction.select("SELECT id FROM visits ORDER BY id DESC", {}), SqlRow{std::int64_t{2}});
}

TEST_P(VersionedRowOnServer, GoesOnAfterACommitThatFailed) {
  Poco::Data::Session mine = store.session();
  PocoRows rows(mine);
  std::uint64_t id = 0;
  mine << "SELECT CONNECTION_ID()", Poco::Data::Keywords::into(id), Poco::Data::Keywords::now;
  const auto killed = [&](const SqlRow& row, PocoRowTransaction&) {
    store.server.execute("KILL " + std::to_string(id));
    return std::optional(SqlRow{std::get<std::int64_t>(row[0]) + 1});
  };
  EXPECT_ANY_THROW((void)accounts.update(rows, "DE1", killed));
  const auto committing = [&] {
    auto transaction = rows.begin();
    transaction.select("SELECT balance FROM accounts", {});
    mine << "SELECT CONNECTION_ID()", Poco::Data::Keywords::into(id), Poco::Data::Keywords::now;
    store.server.execute("KILL " + std::to_string(id));
    transaction.commit();
  };
  mine.reconnect();
  EXPECT_ANY_THROW(committing());
  mine.reconnect();
  EXPECT_EQ(accounts.update(rows, "DE1", oneMore), RowOutcome::committed);
  EXPECT_EQ(store.ask("SELECT balance FROM accounts"), "1");
}

TEST_P(VersionedRowOnServer, LeavesTheSessionInAutocommitMode) {
  Poco::Data::Session mine = store.session();
  PocoRows rows(mine);
  EXPECT_EQ(accounts.update(rows, "DE1", oneMore), RowOutcome::committed);
  EXPECT_EQ(accounts.update(rows, "DE2", oneMore), RowOutcome::notFound);
  execute(mine, "UPDATE accounts SET owner = 'Bob'");
  EXPECT_EQ(store.ask("SELECT owner FROM accounts"), "Bob");
}

TEST_P(VersionedRowOnServer, ATransactionThatHasFailedTakesNothingMore) {
  mysql::ServerRows rows(StoreUri::parse(store.server.uri(store.database)),
                         {.operationTimeout = std::chrono::seconds{20}});
  auto transaction = rows.begin();
  transaction.execute("INSERT INTO ledger (amount) VALUES (1)", {});
  EXPECT_THROW(transaction.execute("INSERT INTO accounts (iban) VALUES ('DE1')", {}), Error) << "it is there";
  EXPECT_THROW(transaction.execute("INSERT INTO ledger (amount) VALUES (2)", {}), StoreUnavailable);
  EXPECT_THROW(transaction.commit(), StoreUnavailable);
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM ledger"), "0");
}

TEST_P(VersionedRowOnServer, AChildLeavesATransactionToItsParent) {
  mysql::ServerRows rows(StoreUri::parse(store.server.uri(store.database)),
                         {.operationTimeout = std::chrono::seconds{20}});
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
  EXPECT_EQ(store.ask("SELECT balance FROM accounts"), "8");
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionedRowOnServer, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
