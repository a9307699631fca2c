// What cannot work is refused at once, in words that say what to mend, and without secrets.

#include <Poco/Data/Session.h>

#include <array>

#include "getlock_fixture.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class GetLockRefusal : public GetLockTest {
 protected:
  static std::shared_ptr<LockDriver> openAs(const std::string& login, std::uint16_t port,
                                            const std::string& rest) {
    StoreRegistry registry;
    mysql::use(registry);
    return registry.open("mysql+getlock://" + login + "@127.0.0.1:" + std::to_string(port) + "/" + rest);
  }

  /// The message with which a ConfigError refuses it.
  std::string refusal(const std::string& login, const std::string& rest) const {
    return refusal(login, rest, store.server);
  }
  static std::string refusal(const std::string& login, const std::string& rest,
                             const DatabaseServer& server) {
    try {
      (void)openAs(login, server.port(), rest)->acquire(Claimant{.key = "refused"}.request());
    } catch (const ConfigError& error) {
      const std::string said = error.what();
      EXPECT_EQ(said.find("s3cr3t"), std::string::npos) << said;
      EXPECT_EQ(said.find("p@ss/word"), std::string::npos) << said;
      EXPECT_EQ(said.find('\n'), std::string::npos) << said;
      return said;
    }
    ADD_FAILURE() << "it was accepted";
    return "";
  }
  static void expectNames(const std::string& said, const std::string& what) {
    EXPECT_NE(said.find(what), std::string::npos) << said << " does not name " << what;
  }

  static constexpr const char* shop = "shop:p%40ss%2Fword";
};

TEST_P(GetLockRefusal, WrongCredentialsAndDatabases) {
  expectNames(refusal("shop:s3cr3t", store.database), "Access denied");
  expectNames(refusal("nobody:s3cr3t", store.database), "Access denied");
  expectNames(refusal(shop, "no_such_database"), "no_such_database");
}

TEST_P(GetLockRefusal, AMissingTableNamesItsSchemaFile) {
  const std::string said = refusal(shop, store.server.newDatabase());
  expectNames(said, "drivers/mysql/schema/getlock.sql");
  expectNames(said, "createTable=true");
  EXPECT_TRUE(store.isFree("refused"));
}

TEST_P(GetLockRefusal, WithoutFencesNoTableIsNeeded) {
  const auto driver = openAs(shop, store.server.port(), store.server.newDatabase() + "?fence=off");
  const Claimant who{};
  const AcquireResult result = driver->acquire(who.request());
  ASSERT_TRUE(granted(result));
  EXPECT_FALSE(std::get<Granted>(result).fence);
  EXPECT_EQ(driver->promises().fence, FencePromise::none);
  EXPECT_EQ(driver->holder(who.key, soon())->owner, "test:1") << "its own locks it knows";
  EXPECT_EQ(store.direct->holder(who.key, soon())->owner, "");
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_P(GetLockRefusal, MissingPrivileges) {
  const std::string user = "'reader_" + store.database + "'@'127.0.0.1'";
  store.server.execute("CREATE USER " + user + " IDENTIFIED BY 's3cr3t'");
  store.server.execute("GRANT SELECT ON " + store.database + ".* TO " + user);
  (void)store.direct->holder("makes the table", soon());
  expectNames(refusal("reader_" + store.database + ":s3cr3t", store.database), "INSERT");
  store.server.execute("GRANT INSERT ON " + store.database + ".* TO " + user);
  expectNames(refusal("reader_" + store.database + ":s3cr3t", store.database), "UPDATE");
  store.server.execute("GRANT UPDATE ON " + store.database + ".* TO " + user);
  const auto driver = openAs("reader_" + store.database + ":s3cr3t", store.server.port(), store.database);
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

TEST_P(GetLockRefusal, AReadOnlyServer) {
  (void)store.direct->holder("makes the table", soon());
  const auto driver = store.open();
  store.server.execute("SET GLOBAL read_only = 1");
  std::string said = "accepted";
  try {
    (void)driver->acquire(Claimant{}.request());
  } catch (const StoreUnavailable& error) {
    said = error.what();
  }
  store.server.execute("SET GLOBAL read_only = 0");
  expectNames(said, "read-only");
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

// MySQL has no Galera. Without a provider there is no cluster, but the server says that it belongs to one.
TEST(GetLockOnMariadbGalera, ANodeOfAClusterIsRefusedAndNotForBeingReadOnly) {
  DatabaseServer node(Brand::mariadb, {"--wsrep-on=ON", "--binlog-format=ROW"});
  try {
    (void)openGetLock(node.newDatabase(), node.port())->acquire(Claimant{}.request());
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("Galera"), std::string::npos) << said;
    EXPECT_EQ(said.find("read-only"), std::string::npos) << said;
  }
}

TEST_P(GetLockRefusal, ATableThatIsLostLaterLeavesNoLockBehind) {
  // The second one shares the session of the first one, so that there is one that draws fences.
  const std::array<Claimant, 2> before{};
  for (const Claimant& each : before) ASSERT_TRUE(granted(store.direct->acquire(each.request())));
  store.server.execute("DROP TABLE " + store.database + ".lockkeeper_fences");
  const Claimant who{};
  EXPECT_THROW((void)store.direct->acquire(who.request()), ConfigError);
  EXPECT_TRUE(store.isFree(who.key));
  for (const Claimant& each : before) {
    EXPECT_EQ(renew(*store.direct, each), RenewOutcome::renewed);
    EXPECT_EQ(store.direct->release(each.claim(), soon()), ReleaseOutcome::released);
  }
  // Now it has a session for itself.
  EXPECT_THROW((void)store.direct->acquire(who.request()), ConfigError);
  EXPECT_TRUE(store.isFree(who.key));
}

TEST_P(GetLockRefusal, ALockedCounterRowLeavesNoLockBehind) {
  const auto driver = store.open();
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  ASSERT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  Poco::Data::Session blocker("MySQL", store.server.connectionString(store.database), 10);
  blocker << "SET autocommit = 0", Poco::Data::Keywords::now;
  blocker << "UPDATE lockkeeper_fences SET owner = 'x'", Poco::Data::Keywords::now;
  EXPECT_THROW((void)driver->acquire(who.request()), StoreUnavailable);
  EXPECT_TRUE(store.isFree(who.key));
}

TEST_P(GetLockRefusal, AUnixSocketServesAsWell) {
  const std::string socket = store.ask("SELECT @@socket");
  const std::string user = "'local_" + store.database + "'@'localhost'";
  store.server.execute("CREATE USER " + user + " IDENTIFIED BY 's3cr3t'");
  store.server.execute("GRANT SELECT, INSERT, UPDATE, CREATE ON " + store.database + ".* TO " + user);
  StoreRegistry registry;
  mysql::use(registry);
  const auto driver = registry.open("mysql+getlock://local_" + store.database + ":s3cr3t@localhost/" +
                                    store.database + "?createTable=true&socket=" + socket);
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

TEST_P(GetLockRefusal, LocalhostMeansTcp) {
  StoreRegistry registry;
  mysql::use(registry);
  const auto driver = registry.open("mysql+getlock://" + std::string(shop) +
                                    "@localhost:" + std::to_string(store.server.port()) + "/" +
                                    store.database + "?createTable=true");
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockRefusal, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
