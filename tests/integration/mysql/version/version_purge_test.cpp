// A purge of the table of locks by hand, as docs/drivers/mysql.md shows it.

#include <Poco/Data/RecordSet.h>
#include <Poco/Data/Session.h>

#include <string>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class VersionPurgeByHand : public VersionTest {
 protected:
  static std::vector<std::string> purgeStatements(Poco::Data::Session& sql) {
    const Poco::Data::RecordSet rows(
        sql,
        "SELECT CONCAT('DELETE FROM lockkeeper_locks WHERE lock_key = 0x', HEX(lock_key), "
        "' AND expires_at < UTC_TIMESTAMP() - INTERVAL 1 DAY;') FROM lockkeeper_locks WHERE "
        "expires_at < UTC_TIMESTAMP() - INTERVAL 1 DAY AND version < (UNIX_TIMESTAMP() - 86400) * 1000000");
    std::vector<std::string> statements;
    for (std::size_t row = 0; row < rows.rowCount(); ++row)
      statements.push_back(rows.value(0, row).convert<std::string>());
    return statements;
  }
  void makeRow(const std::string& key) const {
    store.server.execute("REPLACE INTO " + store.database + ".lockkeeper_locks VALUES ('" + key +
                         "', 1, '', '', '2020-01-01')");
  }
};

TEST_P(VersionPurgeByHand, WaitsForNoRowThatIsInUseInAnyIsolationAndDeletesNone) {
  using Poco::Data::Keywords::now;
  const Claimant held{.key = "held"};
  ASSERT_TRUE(granted(store.direct->acquire(held.request())));
  for (const std::string isolation : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    SCOPED_TRACE(isolation);
    makeRow("a, unused");
    makeRow("used again");
    makeRow("z, unused");
    Poco::Data::Session others = store.session();
    others.begin();  // As a claim or a renewal that is under way.
    others << "SELECT lock_key FROM lockkeeper_locks WHERE lock_key = 'held' FOR UPDATE", now;
    Poco::Data::Session sql = store.session();
    sql << "SET SESSION TRANSACTION ISOLATION LEVEL " + isolation, now;
    sql << "SET SESSION innodb_lock_wait_timeout = 1", now;
    const auto statements = purgeStatements(sql);
    EXPECT_EQ(statements.size(), 3U);
    Claimant again{.key = "used again"};
    ASSERT_TRUE(granted(store.direct->acquire(again.request())));
    for (const std::string& each : statements) EXPECT_NO_THROW((sql << each, now)) << each;
    others.rollback();
    EXPECT_EQ(store.direct->release(again.claim(), soon()), ReleaseOutcome::released);
    EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE lock_key LIKE '%unused'"), "0");
  }
  EXPECT_EQ(store.direct->release(held.claim(), soon()), ReleaseOutcome::released);
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionPurgeByHand, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
