// A purge of the table of locks by hand, as docs/drivers/mysql.md shows it.

#include <Poco/Data/Session.h>

#include "lockkeeper/lock_manager.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class VersionPurgeByHand : public VersionTest {
 protected:
  /// Deletes rows that nobody uses, and does not commit.
  void purge(Poco::Data::Session& sql, const std::string& isolation) const {
    using Poco::Data::Keywords::now;
    sql << "SET SESSION TRANSACTION ISOLATION LEVEL " + isolation, now;
    sql.begin();
    sql << "DELETE FROM lockkeeper_locks WHERE expires_at < UTC_TIMESTAMP() - INTERVAL 1 DAY AND version < "
           "UNIX_TIMESTAMP() * 1000000 LIMIT 1000",
        now;
  }
  RenewOutcome renews(const Claimant& who) const {
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    store.direct->renew({&renewal, 1}, in(2s));
    return renewal.outcome;
  }
  void makeUnusedRow() const {
    store.server.execute("REPLACE INTO " + store.database +
                         ".lockkeeper_locks VALUES ('unused', 1, '', '', '2020-01-01')");
  }

  const Claimant held{.key = "held"};
  const Claimant free{.key = "free"};
};

TEST_P(VersionPurgeByHand, InReadCommittedKeepsNoRowButThoseThatItDeletes) {
  ASSERT_TRUE(granted(store.direct->acquire(held.request())));
  ASSERT_TRUE(granted(store.direct->acquire(free.request())));
  ASSERT_EQ(store.direct->release(free.claim(), soon()), ReleaseOutcome::released);
  makeUnusedRow();
  Poco::Data::Session sql = store.session();
  purge(sql, "READ COMMITTED");
  const std::int64_t waits = store.status("Innodb_row_lock_waits");
  EXPECT_EQ(renews(held), RenewOutcome::renewed);
  EXPECT_TRUE(granted(store.direct->acquire(free.request(soon(), true))));
  EXPECT_EQ(store.direct->release(held.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(store.status("Innodb_row_lock_waits"), waits) << "nobody has waited";
  sql.commit();
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE lock_key = 'unused'"), "0");
}

TEST_P(VersionPurgeByHand, InRepeatableReadKeepsTheRowsOfHeldLocksToo) {
  ASSERT_TRUE(granted(store.direct->acquire(held.request())));
  makeUnusedRow();
  Poco::Data::Session sql = store.session();
  purge(sql, "REPEATABLE READ");
  EXPECT_NE(renews(held), RenewOutcome::renewed) << "what the page says";
  sql.rollback();
  EXPECT_EQ(renews(held), RenewOutcome::renewed);
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionPurgeByHand, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
