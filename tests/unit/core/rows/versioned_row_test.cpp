#include "lockkeeper/rows/versioned_row.h"

#include <gmock/gmock.h>

#include <deque>
#include <functional>
#include <stdexcept>
#include <thread>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"
#include "refusal.h"

namespace lockkeeper {
namespace {

using namespace std::chrono_literals;
using lockkeeper::testing::FakeClock;
using lockkeeper::testing::FakeRandom;
using test::refusalOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct BankDeadlock : std::runtime_error {
  BankDeadlock() : std::runtime_error("deadlock") {}
};

/// One row of an account, and transactions that see it as it was when they began.
class Bank {
 public:
  class Transaction {
   public:
    explicit Transaction(Bank& bank) : bank_(bank), seen_(bank.row) { ++bank_.begun; }
    Transaction(const Transaction&) = delete;
    ~Transaction() { bank_.rolledBack += committed_ ? 0 : 1; }

    std::optional<SqlRow> select(const std::string& statement, const SqlRow& values) {
      bank_.statements.push_back(statement);
      bank_.keys.push_back(values.at(0));
      return seen_;
    }
    std::size_t execute(const std::string& statement, const SqlRow& values) {
      bank_.statements.push_back(statement);
      if (bank_.beforeWrite) bank_.beforeWrite();
      if (values.back() != bank_.row->back()) return 0;
      written_ = values;
      return 1;
    }
    void commit() {
      if (bank_.atCommit) bank_.atCommit();
      committed_ = true;
      bank_.row = SqlRow{written_.at(0), std::get<std::int64_t>(bank_.row->back()) + 1};
    }

   private:
    Bank& bank_;
    const std::optional<SqlRow> seen_;
    SqlRow written_;
    bool committed_ = false;
  };

  Transaction begin() { return Transaction(*this); }
  static bool isContention(const std::exception& failure) {
    return dynamic_cast<const BankDeadlock*>(&failure) != nullptr;
  }

  std::optional<SqlRow> row = SqlRow{std::int64_t{100}, std::int64_t{7}};
  std::function<void()> beforeWrite;
  std::function<void()> atCommit;
  int begun = 0;
  int rolledBack = 0;
  std::vector<std::string> statements;
  std::vector<SqlValue> keys;
};

const VersionedTable accounts{.name = "accounts", .key = "iban", .columns = {"balance"}};
const SqlValue iban = "DE1";

std::optional<SqlRow> lessOne(const SqlRow& row, Bank::Transaction&) {
  return SqlRow{std::get<std::int64_t>(row[0]) - 1};
}

RetryOptions impatient(int attempts) {
  return {.attempts = attempts, .initialPause = 0ms, .longestPause = 0ms};
}

std::string refusalOfRow(const VersionedTable& table, RetryOptions options = {}) {
  return refusalOf([&] { const VersionedRow row(table, std::move(options)); });
}

TEST(VersionedRow, WritesWhatWasComputedAndCountsTheVersionUp) {
  Bank bank;
  EXPECT_EQ(VersionedRow(accounts).update(bank, iban, lessOne), RowOutcome::committed);
  EXPECT_THAT(*bank.row, ElementsAre(SqlValue(std::int64_t{99}), SqlValue(std::int64_t{8})));
  EXPECT_THAT(bank.keys, ElementsAre(iban));
  EXPECT_THAT(
      bank.statements,
      ElementsAre("SELECT `balance`, `version` FROM `accounts` WHERE `iban` = ?",
                  "UPDATE `accounts` SET `balance` = ?, `version` = `version` + 1 WHERE `iban` = ? AND "
                  "`version` = ?"));
}

TEST(VersionedRow, ReadsAgainInANewTransactionWhenItCameTooLate) {
  Bank bank;
  int others = 2;
  bank.beforeWrite = [&] {
    if (others-- > 0) bank.row = SqlRow{std::int64_t{50}, std::get<std::int64_t>(bank.row->back()) + 1};
  };
  EXPECT_EQ(VersionedRow(accounts, impatient(3)).update(bank, iban, lessOne), RowOutcome::committed);
  EXPECT_EQ(bank.row->front(), SqlValue(std::int64_t{49})) << "computed from what the others have left";
  EXPECT_EQ(bank.begun, 3);
  EXPECT_EQ(bank.rolledBack, 2);
}

TEST(VersionedRow, IsAConflictWhenItsAttemptsAreUsedUp) {
  Bank bank;
  bank.beforeWrite = [&] { bank.row->back() = std::get<std::int64_t>(bank.row->back()) + 1; };
  EXPECT_EQ(VersionedRow(accounts, impatient(5)).update(bank, iban, lessOne), RowOutcome::conflict);
  EXPECT_EQ(bank.begun, 5);
  EXPECT_EQ(bank.rolledBack, 5);
}

TEST(VersionedRow, TriesAgainAfterADeadlock) {
  Bank bank;
  int deadlocks = 2;
  bank.beforeWrite = [&] {
    if (deadlocks-- > 0) throw BankDeadlock();
  };
  EXPECT_EQ(VersionedRow(accounts, impatient(3)).update(bank, iban, lessOne), RowOutcome::committed);
  EXPECT_EQ(bank.begun, 3);
}

TEST(VersionedRow, PassesOtherFailuresOnAtOnce) {
  Bank bank;
  bank.beforeWrite = [] { throw std::logic_error("disk full"); };
  EXPECT_THROW((void)VersionedRow(accounts).update(bank, iban, lessOne), std::logic_error);
  EXPECT_EQ(bank.begun, 1);
  EXPECT_EQ(bank.rolledBack, 1);
}

TEST(VersionedRow, NeverRepeatsACommitThatFailed) {
  Bank bank;
  bank.atCommit = [] { throw BankDeadlock(); };
  EXPECT_THROW((void)VersionedRow(accounts).update(bank, iban, lessOne), BankDeadlock)
      << "it may have been applied";
  EXPECT_EQ(bank.begun, 1);
}

TEST(VersionedRow, TellsAMissingRowFromOneThatItWasToldToLeave) {
  Bank bank;
  const auto leave = [](const SqlRow&, Bank::Transaction&) { return std::optional<SqlRow>(); };
  EXPECT_EQ(VersionedRow(accounts).update(bank, iban, leave), RowOutcome::declined);
  bank.row.reset();
  EXPECT_EQ(VersionedRow(accounts).update(bank, iban, lessOne), RowOutcome::notFound);
  EXPECT_EQ(bank.begun, 2);
  EXPECT_EQ(bank.rolledBack, 2);
}

TEST(VersionedRow, PausesAsBackoffSaysBetweenItsAttempts) {
  constexpr int attempts = 4;
  const auto clock = std::make_shared<FakeClock>();
  Environment environment;
  environment.clock = clock;
  environment.random = std::make_shared<FakeRandom>(42);
  const RetryOptions options{
      .attempts = attempts, .initialPause = 10ms, .longestPause = 30ms, .environment = environment};
  Bank bank;
  bank.beforeWrite = [&] { bank.row->back() = std::get<std::int64_t>(bank.row->back()) + 1; };
  RowOutcome outcome = RowOutcome::committed;
  std::jthread updating([&] { outcome = VersionedRow(accounts, options).update(bank, iban, lessOne); });
  FakeRandom sameRandom(42);
  Backoff expected(10ms, 30ms);
  for (int pause = 1; pause < attempts; ++pause) {
    const auto length = expected.next(sameRandom);
    ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + length));
    clock->advance(length);
  }
  updating.join();
  EXPECT_EQ(outcome, RowOutcome::conflict);
}

TEST(VersionedRow, TakesPlainNamesOnly) {
  for (const std::string bad : {"", "a b", "a`b", "a;b", "a.b", "a'b", "ä"}) {
    EXPECT_THAT(refusalOfRow({.name = bad, .key = "k", .columns = {"c"}}), HasSubstr("the table name is"));
    EXPECT_THAT(refusalOfRow({.name = "t", .key = bad, .columns = {"c"}}), HasSubstr("the key column is"));
    EXPECT_THAT(refusalOfRow({.name = "t", .key = "k", .columns = {"c", bad}}), HasSubstr("a column is"));
    EXPECT_THAT(refusalOfRow({.name = "t", .key = "k", .columns = {}, .version = bad}),
                HasSubstr("the version column is"));
  }
  EXPECT_EQ(refusalOfRow({.name = "order", .key = "select", .columns = {"from"}}), "accepted");
}

TEST(VersionedRow, NamesAWrongOption) {
  EXPECT_EQ(refusalOfRow(accounts, impatient(0)), "attempts is 0: 1 to 1000 are allowed");
  EXPECT_EQ(refusalOfRow(accounts, impatient(1001)), "attempts is 1001: 1 to 1000 are allowed");
  struct Case {
    std::chrono::milliseconds initialPause, longestPause;
    const char* fault;
  };
  const auto longest = std::chrono::milliseconds::max();
  for (const Case& each : {
           Case{2s, 1s, "initialPause is 2s: it must be 0s to 1s"},
           Case{-1ms, 1s, "initialPause is -1ms: it must be 0s to 1s"},
           Case{0ms, -1ms, "longestPause is -1ms: it must be 0s to 1h"},
           Case{2ms, 1h + 1ms, "longestPause is 3600001ms: it must be 0s to 1h"},
           Case{2ms, longest, "longestPause is 9223372036854775807ms: it must be 0s to 1h"},
           Case{longest, longest, "longestPause is 9223372036854775807ms: it must be 0s to 1h"},
           Case{1h, 1h, "accepted"},
           Case{0ms, 0ms, "accepted"},
       }) {
    EXPECT_EQ(refusalOfRow(accounts, {.initialPause = each.initialPause, .longestPause = each.longestPause}),
              each.fault);
  }
}

TEST(VersionedRow, RefusesToGuess) {
  Bank bank;
  const auto tooMany = [](const SqlRow&, Bank::Transaction&) { return std::optional<SqlRow>(SqlRow(2)); };
  EXPECT_THROW((void)VersionedRow(accounts).update(bank, iban, tooMany), std::invalid_argument);
  bank.row = SqlRow{std::int64_t{100}, std::string("7")};
  EXPECT_THROW((void)VersionedRow(accounts).update(bank, iban, lessOne), ConfigError) << "'7a' would match 7";
  EXPECT_EQ(bank.rolledBack, 2);
}

}  // namespace
}  // namespace lockkeeper
