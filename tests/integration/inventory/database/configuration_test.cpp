// What is refused before anything is sent, and what a database's refusal turns into.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <barrier>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "database/uri_refusal.h"
#include "free_port.h"
#include "refusal.h"
#include "shop.h"

namespace lockkeeper::test {
namespace {

using inventory::Deduction;
using inventory::StockService;
using inventory::Way;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DatabaseUri, MustNameAKnownDatabase) {
  EXPECT_THAT(uriRefusal(""), HasSubstr("sqlite:/, mysql:// or postgres://"));
  EXPECT_THAT(uriRefusal("oracle://bob:secret@host/db"), HasSubstr("sqlite:/, mysql:// or postgres://"));
  EXPECT_THAT(uriRefusal("oracle://bob:secret@host/db"), Not(HasSubstr("secret")));
}

TEST(DatabaseUri, NeedsAnAbsolutePathForSqlite) {
  EXPECT_THAT(uriRefusal("sqlite:shop.db"), HasSubstr("'shop.db'"));
  EXPECT_THAT(uriRefusal("sqlite::memory:"), HasSubstr("':memory:'"));
  EXPECT_THAT(uriRefusal("sqlite:"), HasSubstr("absolute path"));
}

TEST(DatabaseUri, NeedsHostsAndAPlainDatabaseName) {
  EXPECT_THAT(uriRefusal("mysql://a,a/shop"), HasSubstr("names the host a:3306 twice"));
  EXPECT_THAT(uriRefusal("mysql://a"), HasSubstr("the database name is ''"));
  EXPECT_THAT(uriRefusal("mysql://a/shop;x=1"), HasSubstr("'shop;x=1'"));
  EXPECT_THAT(uriRefusal("mysql://a/" + std::string(65, 'x')), HasSubstr("1 to 64"));
  EXPECT_THAT(uriRefusal("mysql://a/shop?compress=true"), HasSubstr("'compress'"));
  EXPECT_THAT(uriRefusal("mysql://a:0/shop"), HasSubstr("port"));
}

TEST(DatabaseUri, RefusesWhatTheClientLibraryWouldCutShort) {
  EXPECT_THAT(uriRefusal("mysql://bob:se%00cret@a/shop"), HasSubstr("password must not contain NUL"));
  EXPECT_THAT(uriRefusal("mysql://bob:se%00cret@a/shop"), Not(HasSubstr("cret ")));
  EXPECT_THAT(uriRefusal("mysql://b%00ob:secret@a/shop"), HasSubstr("user must not contain"));
  EXPECT_THAT(uriRefusal("mysql://bob:se%3Bcret%20@a/shop"), HasSubstr("accepted")) << "they are no syntax";
}

TEST(StockOptions, AreCheckedWhenTheServiceIsMade) {
  const auto refusal = [](const inventory::StockOptions& options) {
    return refusalOf<std::invalid_argument>(
        [&] { StockService("sqlite:/x", anyManager(), Way::conditionalUpdate, options); });
  };
  EXPECT_EQ(refusal({.sessions = 0}), "sessions is 0: 1 to 256 are allowed");
  EXPECT_EQ(refusal({.sessions = 257}), "sessions is 257: 1 to 256 are allowed");
  EXPECT_EQ(refusal({.operationTimeout = std::chrono::seconds{0}}),
            "operationTimeout is 0s: 1s to 1h are allowed");
}

TEST(SqliteDatabase, SaysWhatIsWrongWithTheFile) {
  TempFolder folder;
  writeFile(folder / "text.db", std::string(4096, 'x'));
  const auto failure = [&](const std::string& file) {
    return refusalOf<ConfigError>(
        [&] { (void)StockService("sqlite:" + file, anyManager(), Way::conditionalUpdate).level("pen"); });
  };
  EXPECT_THAT(failure(folder / "text.db"), HasSubstr("not a database"));
  EXPECT_THAT(failure(folder / "none/shop.db"), HasSubstr("unable to open database file"));
  EXPECT_THAT(failure(folder / "new.db"), HasSubstr("no such table: lockkeeper_stock"));
}

class ServerDatabase : public ::testing::TestWithParam<Backend> {
 protected:
  DatabaseServer& server = mysqlServerOf(GetParam());
};

TEST_P(ServerDatabase, SaysWhatIsWrongInOneLineWithoutThePassword) {
  const auto refusal = [&](const std::string& uri) {
    return refusalOf<ConfigError>(
        [&] { (void)StockService(uri, anyManager(), Way::conditionalUpdate).level("pen"); });
  };
  const std::string port = std::to_string(server.port());
  const std::string denied = refusal("mysql://shop:secret@127.0.0.1:" + port + "/mysql");
  EXPECT_THAT(denied, HasSubstr("Access denied"));
  EXPECT_THAT(denied, Not(HasSubstr("secret")));
  EXPECT_THAT(denied, Not(HasSubstr("\n")));
  EXPECT_THAT(refusal(server.uri("nowhere")), HasSubstr("Unknown database 'nowhere'"));
  const std::string missing = refusal(server.uri(server.newDatabase()));
  EXPECT_THAT(missing, HasSubstr("lockkeeper_stock' doesn't exist (error 1146)"));
  EXPECT_THAT(missing, Not(HasSubstr("SELECT")));
}

TEST_P(ServerDatabase, ReachesLocalhostByTcp) {
  const std::string database = server.newDatabase();
  const std::string port = std::to_string(server.port());
  StockService service("mysql://shop:p%40ss%2Fword@localhost:" + port + "/" + database, anyManager(),
                       Way::conditionalUpdate);
  service.createSchema();
  EXPECT_EQ(service.level("pen"), std::nullopt);
}

TEST_P(ServerDatabase, NeedsNoMoreThanTheDocumentedRights) {
  const Shop shop(GetParam());
  const std::string database = shop.uri().substr(shop.uri().rfind('/') + 1);
  server.execute("CREATE USER IF NOT EXISTS seller@'127.0.0.1' IDENTIFIED BY 'seller'");
  for (const char* const right :
       {"SELECT, INSERT, UPDATE ON {}.lockkeeper_stock", "SELECT, INSERT, UPDATE ON {}.lockkeeper_orders",
        "SELECT, INSERT, UPDATE ON {}.lockkeeper_changes",
        "SELECT, INSERT, UPDATE, DELETE ON {}.lockkeeper_buckets",
        "SELECT, INSERT, UPDATE, DELETE ON {}.lockkeeper_reservations"}) {
    std::string statement = std::string("GRANT ") + right + " TO seller@'127.0.0.1'";
    server.execute(statement.replace(statement.find("{}"), 2, database));
  }
  StockService service("mysql://seller:seller@127.0.0.1:" + std::to_string(server.port()) + "/" + database,
                       anyManager(), Way::conditionalUpdate);
  EXPECT_EQ(service.restock("pen", 10, "delivery"), inventory::Restock::restocked);
  EXPECT_TRUE(service.split("pen", 2));
  EXPECT_EQ(service.deduct("pen", 8, "order"), Deduction::deducted) << "from both";
  EXPECT_EQ(service.takeBack("order", "pen", 8, "return"), inventory::Return::returned);
  using inventory::ReservationState;
  constexpr std::chrono::minutes minute{1};
  EXPECT_EQ(service.reserve({{"pen", 2}}, minute, "cart").state, ReservationState::held);
  EXPECT_EQ(service.replace({{"pen", 3}}, minute, "cart").state, ReservationState::held);
  EXPECT_EQ(service.extend("cart", minute), ReservationState::held);
  EXPECT_EQ(service.confirm("cart"), ReservationState::confirmed);
  EXPECT_EQ(service.reserve({{"pen", 1}}, minute, "other").state, ReservationState::held);
  EXPECT_EQ(service.cancel("other"), ReservationState::cancelled);
  EXPECT_TRUE(service.split("pen", 1));
  (void)service.sweepExpired();
  EXPECT_EQ(service.level("pen"), 7);
  EXPECT_FALSE(service.ledger("pen", 100).empty());
  EXPECT_TRUE(service.checkLedger().empty());
  EXPECT_THAT(refusalOf<ConfigError>([&] { service.createSchema(); }), HasSubstr("lockkeeper_"))
      << "that needs more";
}

TEST_P(ServerDatabase, LogsInWithAPasswordFromAFile) {
  const TempFolder folder;
  writeFile(folder / "password", "p@ss/word\n");
  const std::string file = (folder / "password").string();
  StockService service("mysql://shop@127.0.0.1:" + std::to_string(server.port()) + "/" +
                           server.newDatabase() + "?passwordFile=" + file,
                       anyManager(), Way::conditionalUpdate);
  service.createSchema();
  EXPECT_EQ(service.level("pen"), std::nullopt);
  EXPECT_THAT(uriRefusal("mysql://shop:secret@h/shop?passwordFile=" + file), Not(HasSubstr("accepted")));
}

class FormerTables : public ::testing::TestWithParam<Backend> {
 protected:
  FormerTables() {
    for (const std::string table : {"lockkeeper_orders", "lockkeeper_changes"}) {
      shop.session() << "DROP INDEX " + table + "_ledger ON " + table, Poco::Data::Keywords::now;
    }
  }

  /// On both tables.
  bool hasIndex() const {
    return mysqlServerOf(GetParam())
               .ask("SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = '" +
                    shop.uri().substr(shop.uri().rfind('/') + 1) +
                    "' AND index_name LIKE '%\\_ledger' AND column_name IN ('sku', 'written_at')") == "4";
  }

  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate);
};

TEST_P(FormerTables, GetTheIndexTheyLackAndKeepTheirOrders) {
  service.restock("pen", 3);
  ASSERT_EQ(service.deduct("pen", 1, "order-1"), Deduction::deducted);
  ASSERT_FALSE(hasIndex());
  service.createSchema();
  EXPECT_TRUE(hasIndex());
  service.createSchema();
  EXPECT_EQ(shop.level("pen"), 2);
  EXPECT_EQ(service.deduct("pen", 1, "order-1"), Deduction::duplicate);
}

TEST_P(FormerTables, GetTheIndexOnceFromSeveralServicesAtOnce) {
  constexpr int many = 4;
  std::barrier together(many);
  std::vector<std::future<void>> calls;
  for (int i = 0; i < many; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      StockService mine = shop.service(Way::conditionalUpdate);
      together.arrive_and_wait();
      mine.createSchema();
    }));
  }
  for (auto& each : calls) EXPECT_NO_THROW(each.get());
  EXPECT_TRUE(hasIndex());
}

TEST_P(FormerTables, AreLeftAloneByWhoMayNotMendThem) {
  const DatabaseServer& server = mysqlServerOf(GetParam());
  const std::string database = shop.uri().substr(shop.uri().rfind('/') + 1);
  server.letClerkIn(database);
  server.execute("REVOKE INDEX ON `" + database + "`.* FROM clerk@'127.0.0.1'");
  StockService clerks("mysql://clerk:clerk@127.0.0.1:" + std::to_string(server.port()) + "/" + database,
                      anyManager(), Way::conditionalUpdate);
  EXPECT_THAT(refusalOf<ConfigError>([&] { clerks.createSchema(); }),
              HasSubstr("CREATE INDEX lockkeeper_orders_ledger ON lockkeeper_orders (sku, written_at)"));
  EXPECT_FALSE(hasIndex());
}

INSTANTIATE_TEST_SUITE_P(All, FormerTables, ::testing::ValuesIn(mysqlServers),
                         [](const auto& each) { return nameOf(each.param); });

INSTANTIATE_TEST_SUITE_P(All, ServerDatabase, ::testing::ValuesIn(mysqlServers),
                         [](const auto& each) { return nameOf(each.param); });

TEST(NoDatabase, IsUnavailableWhenNobodyListens) {
  const std::string uri = "mysql://shop:secret@127.0.0.1:" + std::to_string(freePort()) + "/shop";
  StockService service(uri, anyManager(), Way::conditionalUpdate);
  const auto message = refusalOf<StoreUnavailable>([&] { (void)service.deduct("pen", 1, "order-1"); });
  EXPECT_THAT(message, HasSubstr("Can't connect to server"));
  EXPECT_THAT(message, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace lockkeeper::test
