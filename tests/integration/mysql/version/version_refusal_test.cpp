// What is refused before anything is sent, and what a server's refusal turns into: one line, without secrets.

#include <Poco/Data/Session.h>
#include <gmock/gmock.h>

#include "free_port.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const auto secretive = AllOf(Not(HasSubstr("s3cr3t")), Not(HasSubstr("p@ss")));

std::shared_ptr<LockDriver> open(const std::string& uri) {
  StoreRegistry registry;
  mysql::use(registry);
  return registry.open(uri);
}

template <class Failure, class Call>
std::string messageOf(Call&& call) {
  try {
    call();
  } catch (const Failure& error) {
    EXPECT_THAT(error.what(), AllOf(secretive, Not(HasSubstr("\n"))));
    return error.what();
  }
  return "no error";
}

std::string refusalOfUri(const std::string& uri) {
  return messageOf<ConfigError>([&] { open("mysql+version://shop:s3cr3t@" + uri); });
}

TEST(VersionUri, IsCheckedBeforeAnythingIsSent) {
  EXPECT_THAT(refusalOfUri("a,a/shop"), HasSubstr("names the host a:3306 twice"));
  EXPECT_THAT(refusalOfUri("a"), HasSubstr("the database name is ''"));
  EXPECT_THAT(refusalOfUri("a/shop?tabel=x"), HasSubstr("'tabel' is unknown"));
  EXPECT_THAT(refusalOfUri("a/shop?table=lo`cks"), HasSubstr("the table name is 'lo`cks'"));
  EXPECT_THAT(refusalOfUri("a/shop?table=" + std::string(65, 'x')), HasSubstr("1 to 64"));
  EXPECT_THAT(refusalOfUri("a/shop?table=" + std::string(58, 'x')),
              AllOf(HasSubstr("the table name is '" + std::string(58, 'x') + "'"), HasSubstr("at most 57")));
  EXPECT_NO_THROW(open("mysql+version://shop:s3cr3t@a/shop?table=" + std::string(57, 'x')));
  EXPECT_THAT(refusalOfUri("a/shop?createTable=maybe"), HasSubstr("'maybe'"));
  EXPECT_THAT(refusalOfUri("a/shop?connections=0"), HasSubstr("1 to 256"));
  EXPECT_THAT(refusalOfUri("a/shop?connectTimeout=1500ms"), HasSubstr("whole seconds"));
  EXPECT_THAT(refusalOfUri("a/shop?connectTimeout=2m"), HasSubstr("1m"));
  EXPECT_THAT(refusalOfUri("a/shop?caFile=/etc/ca.pem"), HasSubstr("'caFile' is given without tls=on"));
  EXPECT_THAT(refusalOfUri("a/shop?tls=on&certFile=/dev/null"),
              HasSubstr("certFile and keyFile belong together"));
  EXPECT_THAT(refusalOfUri("a/shop?verify=off"), HasSubstr("verify is given without tls=on"));
}

TEST(VersionUri, OfNobodyIsUnavailable) {
  const auto driver = open("mysql+version://shop:s3cr3t@127.0.0.1:" + std::to_string(freePort()) + "/shop");
  EXPECT_THAT(messageOf<StoreUnavailable>([&] { (void)driver->holder("k", soon()); }),
              HasSubstr("Can't connect to server"));
}

class VersionRefusal : public ::testing::TestWithParam<Brand> {
 protected:
  std::string uri(const std::string& login, const std::string& path) const {
    return "mysql+version://" + login + "@127.0.0.1:" + std::to_string(server.port()) + "/" + path;
  }
  static std::string refusalOf(const std::string& uri) {
    const auto driver = open(uri);
    return messageOf<ConfigError>([&] { (void)driver->acquire(Claimant{}.request()); });
  }

  DatabaseServer& server = serverOf(GetParam());
  const std::string database = server.newDatabase();
  const std::string shop = "shop:p%40ss%2Fword";
};

TEST_P(VersionRefusal, NamesWrongCredentialsAndDatabases) {
  EXPECT_THAT(refusalOf(uri("shop:s3cr3t", database)), HasSubstr("Access denied"));
  EXPECT_THAT(refusalOf(uri(shop, "nowhere")), HasSubstr("Unknown database 'nowhere'"));
}

TEST_P(VersionRefusal, SaysWhichSchemaMakesTheMissingTable) {
  const std::string missing = refusalOf(uri(shop, database + "?table=my_locks"));
  EXPECT_THAT(missing, AllOf(HasSubstr("my_locks' doesn't exist"),
                             HasSubstr("drivers/mysql/schema/version.sql"), HasSubstr("createTable=true")));
}

TEST_P(VersionRefusal, MakesTheTableOnlyWhenTold) {
  const auto making = open(uri(shop, database + "?table=select&createTable=true"));
  EXPECT_TRUE(granted(making->acquire(Claimant{}.request()))) << "a word of SQL is as good a name as any";
  const auto using_ = open(uri(shop, database + "?table=select"));
  EXPECT_TRUE(granted(using_->acquire(Claimant{}.request())));
}

TEST_P(VersionRefusal, TheLongestTableNameServesSharesToo) {
  const auto driver = open(uri(shop, database + "?createTable=true&table=" + std::string(57, 'x')));
  Claimant reader;
  reader.share = Share{1, Share::most};
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
  EXPECT_TRUE(granted(driver->acquire(reader.request())));
}

TEST_P(VersionRefusal, NamesAMissingPrivilege) {
  (void)open(uri(shop, database + "?createTable=true"))->holder("k", soon());
  server.execute("CREATE USER IF NOT EXISTS 'reader'@'127.0.0.1' IDENTIFIED BY 's3cr3t'");
  server.execute("GRANT SELECT ON " + database + ".* TO 'reader'@'127.0.0.1'");
  EXPECT_THAT(refusalOf(uri("reader:s3cr3t", database)), HasSubstr("INSERT"));
}

TEST_P(VersionRefusal, AReadOnlyServerIsRefused) {
  DatabaseServer readOnly(GetParam(), {"--read-only"});
  const std::string replica = readOnly.newDatabase();
  const std::string address = "127.0.0.1:" + std::to_string(readOnly.port()) + "/" + replica;
  const auto driver = open("mysql+version://" + shop + "@" + address);
  EXPECT_THAT(messageOf<StoreUnavailable>([&] { (void)driver->acquire(Claimant{}.request()); }),
              HasSubstr("read-only"));
}

// MySQL has no Galera. Without a provider there is no cluster, but the server says that it belongs to one.
TEST(VersionRowsOnMariadbGalera, ANodeOfAClusterIsRefused) {
  DatabaseServer node(Brand::mariadb, {"--wsrep-on=ON", "--binlog-format=ROW"});
  const std::string uri = node.uri(node.newDatabase());
  const auto driver = open("mysql+version" + uri.substr(uri.find("://")) + "?createTable=true");
  EXPECT_THAT(messageOf<ConfigError>([&] { (void)driver->acquire(Claimant{}.request()); }),
              AllOf(HasSubstr("Galera"), Not(HasSubstr("read-only"))));
}

TEST_P(VersionRefusal, AServerThatBecomesReadOnlyIsUnavailable) {
  DatabaseServer former(GetParam());
  former.execute("CREATE DATABASE locks");
  former.execute("CREATE USER 'keeper'@'127.0.0.1' IDENTIFIED BY 'x'");
  former.execute("GRANT SELECT, INSERT, UPDATE, CREATE ON locks.* TO 'keeper'@'127.0.0.1'");
  const auto driver =
      open("mysql+version://keeper:x@127.0.0.1:" + std::to_string(former.port()) + "/locks?createTable=true");
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  former.execute("SET GLOBAL read_only = ON");
  EXPECT_THAT(messageOf<StoreUnavailable>([&] { (void)driver->acquire(Claimant{}.request()); }),
              HasSubstr("read-only"));
  former.execute("SET GLOBAL read_only = OFF");
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

// A table in memory, which is small: a full tablespace makes MariaDB 10.11 crash now and then.
TEST_P(VersionRefusal, ATableThatIsFullIsUnavailableUntilThereIsRoom) {
  const auto driver = open(uri(shop, database + "?createTable=true"));
  const Claimant holder{};
  ASSERT_TRUE(granted(driver->acquire(holder.request())));
  Poco::Data::Session sql("MySQL", server.connectionString(database), 10);
  for (const char* each :
       {"SET SESSION max_heap_table_size = 16384", "ALTER TABLE lockkeeper_locks ENGINE = MEMORY"})
    sql << each, Poco::Data::Keywords::now;
  const auto isFull = AllOf(HasSubstr("is full"), HasSubstr("(error 1114)"));
  EXPECT_THAT(messageOf<StoreUnavailable>([&] {
                for (int i = 0; i < 1000; ++i) (void)driver->acquire(Claimant{}.request());
              }),
              isFull);
  LockManager manager(driver);
  const Instant begin = now();
  EXPECT_THAT(messageOf<StoreUnavailable>([&] { (void)manager.lock("k", {.waitFor = 500ms}); }), isFull);
  EXPECT_GE(now() - begin, 500ms) << "it has gone on trying";
  Renewal renewal{.claim = holder.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed) << renewal.cause;
  EXPECT_EQ(driver->release(holder.claim(), soon()), ReleaseOutcome::released);
  sql << "DELETE FROM lockkeeper_locks WHERE token = ''", Poco::Data::Keywords::now;
  EXPECT_TRUE(manager.lock("k", {.waitFor = 30s}).valid());
}

struct Notes final : Listener {
  void on(const Event& event) override {
    if (event.kind != EventKind::noted) return;
    text += std::string(event.store) + " " + std::string(event.text) + "\n";
  }
  std::string text;
};

TEST_P(VersionRefusal, SaysOnceWhatACrashOfTheServerDoesToItsLocks) {
  const auto notes = std::make_shared<Notes>();
  Environment environment;
  environment.listener = notes;
  const auto driver = openVersion(database, server.port(), "", environment);
  EXPECT_EQ(driver->promises().fence, FencePromise::whileStoreKeepsWrites) << "nothing is known yet";
  (void)driver->holder("k", soon());
  EXPECT_EQ(driver->promises().fence, FencePromise::durable);
  EXPECT_THAT(notes->text, AllOf(HasSubstr("survives"), HasSubstr(driver->promises().durability)));
  server.killSessions();
  server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  EXPECT_TRUE(waitUntil([&] { return server.sessions() == 0; }));
  (void)driver->holder("k", soon());
  server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
  EXPECT_THAT(notes->text, HasSubstr("may undo"));
  EXPECT_THAT(notes->text, secretive);
  EXPECT_EQ(driver->promises().fence, FencePromise::whileStoreKeepsWrites) << "and its fences may go back";
}

// Whether there are replicas, the server does not say.
TEST(VersionRowsOnMariadb, ABinaryLogIsNoPromiseThatAFailoverLosesNoFence) {
  DatabaseServer server(Brand::mariadb, {"--log-bin", "--sync-binlog=1"});
  const auto driver = openVersion(server.newDatabase(), server.port());
  (void)driver->holder("k", soon());
  EXPECT_EQ(driver->promises().fence, FencePromise::whileStoreKeepsWrites);
  EXPECT_THAT(driver->promises().durability, AllOf(HasSubstr("survives"), HasSubstr("may lack")));
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionRefusal, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
