// What transactions really see of each other on InnoDB, one test for each scenario of docs/drivers/mysql.md.
// The answers differ between servers in one case only: MariaDB with innodb_snapshot_isolation = ON (10.11:
// off by default).

#include <Poco/Data/MySQL/Connector.h>
#include <Poco/Data/RecordSet.h>
#include <Poco/Data/Session.h>
#include <Poco/Data/Statement.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>

#include "database_server.h"
#include "version/version_fixture.h"

namespace lockkeeper::test {
namespace {

using Poco::Data::Keywords::now;

struct Flavour {
  const char* name;
  Brand brand;
  bool snapshots;  ///< MariaDB's innodb_snapshot_isolation: by default off, and on from MariaDB 11.6.
};

constexpr Flavour flavours[] = {{"Mariadb", Brand::mariadb, false},
                                {"MariadbSnapshot", Brand::mariadb, true},
                                {"Mysql", Brand::mysql, false}};

constexpr long recordHasChanged = 1020;
constexpr long lockWaitTimeout = 1205;
constexpr long deadlock = 1213;

/// One of the two terminals of the scenarios.
class Terminal {
 public:
  Terminal(const std::string& connection, const Flavour& flavour) : session_("MySQL", connection, 10) {
    session_ << "SET SESSION innodb_lock_wait_timeout = 1", now;
    if (flavour.brand == Brand::mariadb) {
      session_ << std::string("SET SESSION innodb_snapshot_isolation = ") +
                      (flavour.snapshots ? "ON" : "OFF"),
          now;
    }
  }

  void begin(const std::string& level) {
    session_ << "SET SESSION TRANSACTION ISOLATION LEVEL " + level, now;
    session_.begin();
  }
  void commit() { session_.commit(); }
  void rollback() { session_.rollback(); }

  /// The first value of the result.
  std::string read(const std::string& query) {
    const Poco::Data::RecordSet rows(session_, query);
    return rows.rowCount() == 0 ? "no row" : rows.value(0, 0).convert<std::string>();
  }

  /// How many rows it has changed, or the negative number of the error.
  long write(const std::string& statement) {
    try {
      Poco::Data::Statement change(session_);
      change << statement;
      return static_cast<long>(change.execute());
    } catch (const Poco::Exception& error) {
      const std::string mark = "errno]: ";
      return -std::stol(error.message().substr(error.message().rfind(mark) + mark.size()));
    }
  }

 private:
  Poco::Data::Session session_;
};

class Isolation : public ::testing::TestWithParam<Flavour> {
 protected:
  Isolation() {
    c.write(
        "CREATE TABLE score (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, score INT NOT NULL, "
        "version BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB");
    c.write("INSERT INTO score (id, name, score) VALUES (1, 'Bob', 89), (5, 'Eve', 60)");
  }

  bool snapshots() const { return GetParam().snapshots; }

  DatabaseServer& server = serverOf(GetParam().brand);
  const std::string connection = server.connectionString(server.newDatabase());
  Terminal a{connection, GetParam()};
  Terminal b{connection, GetParam()};
  Terminal c{connection, GetParam()};  // Looks on, in autocommit mode.

  const std::string scoreOfBob = "SELECT score FROM score WHERE id = 1";
  const std::string bobFalls = "UPDATE score SET score = 29, version = version + 1 WHERE id = 1";
};

TEST_P(Isolation, ReadUncommittedSeesWhatMayNeverHaveBeen) {
  a.begin("READ UNCOMMITTED");
  b.begin("READ UNCOMMITTED");
  EXPECT_EQ(b.write(bobFalls), 1);
  EXPECT_EQ(a.read(scoreOfBob), "29");
  b.rollback();
  EXPECT_EQ(a.read(scoreOfBob), "89");
}

TEST_P(Isolation, ReadCommittedReadsDifferentlyTheSecondTime) {
  a.begin("READ COMMITTED");
  EXPECT_EQ(a.read(scoreOfBob), "89");
  b.begin("READ COMMITTED");
  EXPECT_EQ(b.write(bobFalls), 1);
  EXPECT_EQ(a.read(scoreOfBob), "89") << "not committed yet";
  b.commit();
  EXPECT_EQ(a.read(scoreOfBob), "29");
}

TEST_P(Isolation, RepeatableReadReadsTheSameAgain) {
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read(scoreOfBob), "89");
  EXPECT_EQ(b.write(bobFalls), 1);
  EXPECT_EQ(a.read(scoreOfBob), "89");
  a.commit();
  EXPECT_EQ(a.read(scoreOfBob), "29");
}

// The question of the document: does `WHERE score = 89` match what A reads, or what there is?
TEST_P(Isolation, RepeatableReadWritesToTheRowThatThereIs) {
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read(scoreOfBob), "89");
  EXPECT_EQ(b.write(bobFalls), 1);
  const long written = a.write("UPDATE score SET name = 'Alice' WHERE score = 89 AND id = 1");
  EXPECT_EQ(written, snapshots() ? -recordHasChanged : 0) << "though A goes on reading 89";
  a.commit();
  EXPECT_EQ(c.read("SELECT CONCAT(name, score) FROM score WHERE id = 1"), "Bob29");
}

TEST_P(Isolation, RepeatableReadLosesAnUpdateThatWasComputedFromARead) {
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read(scoreOfBob), "89");
  EXPECT_EQ(b.write(bobFalls), 1);
  const long written = a.write("UPDATE score SET score = 89 + 1 WHERE id = 1");
  a.commit();
  if (snapshots()) {
    EXPECT_EQ(written, -recordHasChanged);
    EXPECT_EQ(c.read(scoreOfBob), "29");
  } else {
    EXPECT_EQ(written, 1);
    EXPECT_EQ(c.read(scoreOfBob), "90") << "what B has written is gone, and nobody was told";
  }
}

TEST_P(Isolation, RepeatableReadReadsNoPhantomUntilItWritesToIt) {
  const std::string count = "SELECT COUNT(*) FROM score WHERE id < 10";
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read(count), "2");
  EXPECT_EQ(b.write("INSERT INTO score (id, name, score) VALUES (7, 'Mallory', 1)"), 1);
  EXPECT_EQ(a.read(count), "2");
  const long written = a.write("UPDATE score SET score = score + 1 WHERE id < 10");
  if (snapshots()) {
    EXPECT_EQ(written, -recordHasChanged);
  } else {
    EXPECT_EQ(written, 3) << "the phantom, too";
    EXPECT_EQ(a.read(count), "3") << "and from now on it is seen";
  }
}

TEST_P(Isolation, RepeatableReadKeepsPhantomsOutOfWhatItReadsForUpdate) {
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read("SELECT COUNT(*) FROM score WHERE id < 10 FOR UPDATE"), "2");
  EXPECT_EQ(b.write("INSERT INTO score (id, name, score) VALUES (7, 'Mallory', 1)"), -lockWaitTimeout);
  a.commit();
  EXPECT_EQ(b.write("INSERT INTO score (id, name, score) VALUES (7, 'Mallory', 1)"), 1);
}

TEST_P(Isolation, SerializableMakesWritersWaitForReaders) {
  a.begin("SERIALIZABLE");
  EXPECT_EQ(a.read(scoreOfBob), "89");
  EXPECT_EQ(b.write(bobFalls), -lockWaitTimeout);
  a.commit();
  EXPECT_EQ(b.write(bobFalls), 1);
}

TEST_P(Isolation, SerializableRefusesOneOfTwoThatReadAndThenWrite) {
  a.begin("SERIALIZABLE");
  b.begin("SERIALIZABLE");
  EXPECT_EQ(a.read(scoreOfBob), "89");
  EXPECT_EQ(b.read(scoreOfBob), "89");
  EXPECT_EQ(a.write(bobFalls), -lockWaitTimeout) << "B still reads";
  EXPECT_EQ(b.write(bobFalls), -lockWaitTimeout) << "a timeout ends a statement only: A still reads, too";
  a.rollback();
  EXPECT_EQ(b.write(bobFalls), 1);
  b.commit();
}

constexpr const char* readVersion = "SELECT version FROM score WHERE id = 1";

std::string writeAtVersion(const std::string& version) {
  return "UPDATE score SET score = 90, version = version + 1 WHERE id = 1 AND version = " + version;
}

// Why VersionedRow begins anew.
TEST_P(Isolation, ARetryInTheSameTransactionCanNeverSucceed) {
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read(readVersion), "0");
  EXPECT_EQ(b.write(bobFalls), 1);
  // With snapshots the first failure has ended the transaction.
  for (int attempt = 0; attempt < (snapshots() ? 1 : 3); ++attempt) {
    EXPECT_EQ(a.read(readVersion), "0") << "for ever";
    EXPECT_EQ(a.write(writeAtVersion("0")), snapshots() ? -recordHasChanged : 0);
  }
  a.rollback();

  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read(readVersion), "1");
  EXPECT_EQ(a.write(writeAtVersion("1")), 1);
  a.commit();
  EXPECT_EQ(c.read(scoreOfBob), "90");
}

TEST_P(Isolation, AnUpdateThatMatchesNothingKeepsTheRowLocked) {
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.write(writeAtVersion("77")), 0);
  EXPECT_EQ(b.write(bobFalls), -lockWaitTimeout) << "so roll back before you pause";
  a.rollback();
  EXPECT_EQ(b.write(bobFalls), 1);
}

TEST_P(Isolation, ARetryInTheSameTransactionSucceedsWhereReadsAreFresh) {
  a.begin("READ COMMITTED");
  EXPECT_EQ(a.read(readVersion), "0");
  EXPECT_EQ(b.write(bobFalls), 1);
  EXPECT_EQ(a.write(writeAtVersion("0")), 0);
  EXPECT_EQ(a.read(readVersion), "1");
  EXPECT_EQ(a.write(writeAtVersion("1")), 1);
  a.commit();
}

TEST_P(Isolation, AReadForUpdateSeesTheRowThatThereIs) {
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read(readVersion), "0");
  EXPECT_EQ(b.write(bobFalls), 1);
  if (snapshots()) {
    EXPECT_EQ(a.write("UPDATE score SET name = 'x' WHERE id = 1"), -recordHasChanged);
  } else {
    EXPECT_EQ(a.read(std::string(readVersion) + " FOR UPDATE"), "1");
    EXPECT_EQ(a.read(readVersion), "0") << "and a plain read still does not";
  }
}

TEST_P(Isolation, OneConditionalUpdateNeedsNoTransactionAtAll) {
  EXPECT_EQ(b.write(bobFalls), 1);
  EXPECT_EQ(a.write(writeAtVersion("0")), 0);
  EXPECT_EQ(a.read(readVersion), "1");
  EXPECT_EQ(a.write(writeAtVersion("1")), 1);
}

TEST_P(Isolation, TwoTransactionsThatCrossAreADeadlockForOneOfThem) {
  a.begin("REPEATABLE READ");
  b.begin("REPEATABLE READ");
  EXPECT_EQ(a.write("UPDATE score SET score = 1 WHERE id = 1"), 1);
  EXPECT_EQ(b.write("UPDATE score SET score = 1 WHERE id = 5"), 1);
  auto crossing =
      std::async(std::launch::async, [&] { return a.write("UPDATE score SET score = 2 WHERE id = 5"); });
  const long ofB = b.write("UPDATE score SET score = 2 WHERE id = 1");
  if (ofB == 1) b.commit();
  const long ofA = crossing.get();
  EXPECT_EQ(std::min(ofA, ofB), -deadlock);
  EXPECT_EQ(std::max(ofA, ofB), 1);
}

// So whoever meets this error must roll back himself, or commit half of what he meant.
TEST_P(Isolation, ALockWaitTimeoutEndsTheStatementAndNotTheTransaction) {
  b.begin("READ COMMITTED");
  EXPECT_EQ(b.write(bobFalls), 1);
  a.begin("READ COMMITTED");
  EXPECT_EQ(a.write("UPDATE score SET score = 1 WHERE id = 5"), 1);
  EXPECT_EQ(a.write(bobFalls), -lockWaitTimeout);
  a.commit();
  EXPECT_EQ(c.read("SELECT score FROM score WHERE id = 5"), "1");
}

TEST_P(Isolation, ARecordThatHasChangedEndsTheTransaction) {
  if (!snapshots()) GTEST_SKIP() << "only with innodb_snapshot_isolation";
  a.begin("REPEATABLE READ");
  EXPECT_EQ(a.read(scoreOfBob), "89");
  EXPECT_EQ(a.write("UPDATE score SET score = 1 WHERE id = 5"), 1);
  EXPECT_EQ(b.write(bobFalls), 1);
  EXPECT_EQ(a.write(writeAtVersion("0")), -recordHasChanged);
  a.commit();
  EXPECT_EQ(c.read("SELECT score FROM score WHERE id = 5"), "60") << "as after a deadlock";
}

INSTANTIATE_TEST_SUITE_P(Servers, Isolation, ::testing::ValuesIn(flavours),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace lockkeeper::test
