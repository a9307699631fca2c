// What differs on PostgreSQL: what is refused, and what the server's settings do not change.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <barrier>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "database/database.h"
#include "database/uri_refusal.h"
#include "environment_variable.h"
#include "free_port.h"
#include "lockkeeper/error.h"
#include "order/written_order.h"
#include "pg_bouncer.h"
#include "refusal.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::Deduction;
using inventory::ReservationState;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PostgresDatabaseUri, NamesOneHostAUserAndPlainNames) {
  EXPECT_THAT(uriRefusal("postgres://bob@a,b/shop"), HasSubstr("names 2 hosts: stock needs one"));
  EXPECT_THAT(uriRefusal("postgres://a/shop"), HasSubstr("names no user"));
  EXPECT_THAT(uriRefusal("postgres://bob@a"), HasSubstr("the database name is ''"));
  EXPECT_THAT(uriRefusal("postgres://bob@a/" + std::string(64, 'x')), HasSubstr("at most 63"));
  EXPECT_THAT(uriRefusal("postgres://bob@a/shop?schema=a\"b"), HasSubstr("the schema name is 'a"));
  EXPECT_THAT(uriRefusal("postgres://bob@a/shop?createTable=true"), HasSubstr("'createTable'"));
  EXPECT_THAT(uriRefusal("postgres://bob@a/shop?socket=run"), HasSubstr("absolute path of at most 80 bytes"));
  EXPECT_THAT(uriRefusal("postgres://bob@a/shop?verify=off"), HasSubstr("verify is given without tls"));
  const std::string cut = uriRefusal("postgres://bob:se%00cret@a/shop");
  EXPECT_THAT(cut, HasSubstr("password must not contain NUL"));
  EXPECT_THAT(cut, Not(HasSubstr("cret ")));
  EXPECT_THAT(uriRefusal("postgres://bob:se%3Bcret%20@a/shop?schema=stock"), HasSubstr("accepted"));
}

TEST(PostgresDatabaseUri, IsUnavailableWhenNobodyListens) {
  LockManager locks(std::make_shared<MemoryDriver>());
  StockService service("postgres://shop:secret@127.0.0.1:" + std::to_string(freePort()) + "/shop", locks,
                       Way::conditionalUpdate);
  try {
    (void)service.deduct("pen", 1, "order");
    ADD_FAILURE() << "nobody listens";
  } catch (const StoreUnavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("onnection"));
    EXPECT_THAT(error.what(), Not(HasSubstr("secret")));
  }
}

class PostgresStock : public ::testing::Test {
 protected:
  void execute(const std::string& statement) {
    try {
      shop.session() << statement, now;
    } catch (const Poco::Exception& error) {
      throw std::runtime_error(statement + ": " + error.displayText());
    }
  }

  std::string uriFor(const std::string& login) const {
    return "postgres://" + login + shop.uri().substr(shop.uri().find('@'));
  }
  std::string databaseName() const { return shop.uri().substr(shop.uri().rfind('/') + 1); }

  /// All ways to sell, and carts.
  void expectSells(const std::string& uri) {
    for (const Way way : allWays) {
      StockService service(uri, shop.manager(), way);
      const std::string name = toString(way);
      service.restock(name, 5, name);
      EXPECT_EQ(service.deduct(name, 2, name), Deduction::deducted);
      EXPECT_EQ(service.deduct(name, 2, name), Deduction::duplicate);
      EXPECT_EQ(service.reserve({{name, 3}}, 1min, "cart of " + name).state, ReservationState::held);
      EXPECT_EQ(service.deduct(name, 1, "another " + name), Deduction::soldOut);
      EXPECT_EQ(service.confirm("cart of " + name), ReservationState::confirmed);
      EXPECT_TRUE(service.checkLedger().empty());
    }
  }

  Shop shop{Backend::postgres};
};

TEST_F(PostgresStock, SaysWhatIsWrongInOneLineWithoutThePassword) {
  const auto refusal = [&](const std::string& uri) {
    return refusalOf<ConfigError>(
        [&] { (void)StockService(uri, shop.manager(), Way::conditionalUpdate).level("pen"); });
  };
  const std::string denied = refusal(uriFor("shop:secret"));
  EXPECT_THAT(denied, HasSubstr("password authentication failed"));
  EXPECT_THAT(denied, Not(HasSubstr("secret")));
  EXPECT_THAT(denied, Not(HasSubstr("\n")));
  StockServer& server = serverOf(Backend::postgres);
  EXPECT_THAT(refusal(server.uri("nowhere", server.port())), HasSubstr("\"nowhere\" does not exist"));
  EXPECT_THAT(refusal(server.uri(server.newDatabase(), server.port())),
              HasSubstr("\"lockkeeper_stock\" does not exist (42P01)"));
}

TEST_F(PostgresStock, VariablesOfTheClientLibraryChooseNothing) {
  for (const auto& [name, value] : {std::pair{"PGCHANNELBINDING", "require"},
                                    {"PGSSLCERT", "/nowhere"},
                                    {"PGSSLMINPROTOCOLVERSION", "none"},
                                    {"PGPASSWORD", "wrong"}}) {
    SCOPED_TRACE(name);
    const EnvironmentVariable variable(name, value);
    StockService service(shop.uri(), shop.manager(), Way::conditionalUpdate);
    EXPECT_NO_THROW((void)service.level("pen"));
  }
}

TEST_F(PostgresStock, VariablesThatTheClientLibraryWouldObeyAreRefused) {
  for (const auto& [name, uri] : {std::pair{"PGOPTIONS", shop.uri()},
                                  {"PGSERVICE", shop.uri()},
                                  {"PGPASSWORD", uriFor("shop")},
                                  {"PGHOSTADDR", shop.uri() + "?socket=/tmp"}}) {
    const EnvironmentVariable variable(name, "-c statement_timeout=1");
    StockService service(uri, shop.manager(), Way::conditionalUpdate);
    EXPECT_THAT(refusalOf<ConfigError>([&] { (void)service.level("pen"); }), HasSubstr(name));
  }
}

TEST_F(PostgresStock, NeedsNoMoreThanTheDocumentedRights) {
  execute("DROP ROLE IF EXISTS seller");
  execute("CREATE ROLE seller LOGIN PASSWORD 'seller'");
  execute(
      "GRANT SELECT, INSERT, UPDATE ON lockkeeper_stock, lockkeeper_orders, lockkeeper_changes TO seller");
  execute("GRANT SELECT, INSERT, UPDATE, DELETE ON lockkeeper_buckets, lockkeeper_reservations TO seller");
  StockService service(uriFor("seller:seller"), shop.manager(), Way::conditionalUpdate);
  EXPECT_NO_THROW(service.createSchema()) << "all is there";
  EXPECT_EQ(service.restock("pen", 10, "delivery"), inventory::Restock::restocked);
  EXPECT_TRUE(service.split("pen", 2));
  EXPECT_EQ(service.deduct("pen", 8, "order"), Deduction::deducted) << "from both";
  EXPECT_EQ(service.takeBack("order", "pen", 8, "return"), inventory::Return::returned);
  EXPECT_EQ(service.reserve({{"pen", 2}}, 1min, "cart").state, ReservationState::held);
  EXPECT_EQ(service.replace({{"pen", 3}}, 1min, "cart").state, ReservationState::held);
  EXPECT_EQ(service.extend("cart", 1min), ReservationState::held);
  EXPECT_EQ(service.confirm("cart"), ReservationState::confirmed);
  EXPECT_EQ(service.reserve({{"pen", 1}}, 1min, "other").state, ReservationState::held);
  EXPECT_EQ(service.cancel("other"), ReservationState::cancelled);
  EXPECT_TRUE(service.split("pen", 1));
  (void)service.sweepExpired();
  EXPECT_EQ(service.level("pen"), 7);
  EXPECT_FALSE(service.ledger("pen", 100).empty());
  EXPECT_TRUE(service.checkLedger().empty());
  execute("DROP OWNED BY seller");
  execute("DROP ROLE seller");
}

TEST_F(PostgresStock, TablesAreMadeOnceByServicesThatMakeThemAtOnce) {
  StockServer& server = serverOf(Backend::postgres);
  const std::string uri = server.uri(server.newDatabase(), server.port());
  constexpr int many = 4;
  std::barrier together(many);
  std::vector<std::future<void>> calls;
  for (int i = 0; i < many; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      StockService mine(uri, shop.manager(), Way::conditionalUpdate, {.operationTimeout = 20s});
      together.arrive_and_wait();
      mine.createSchema();
    }));
  }
  for (auto& each : calls) EXPECT_NO_THROW(each.get());
  StockService service(uri, shop.manager(), Way::conditionalUpdate);
  service.restock("pen", 1);
  EXPECT_EQ(service.deduct("pen", 1, "order"), Deduction::deducted);
}

TEST_F(PostgresStock, TablesMayBeInASchemaOfTheirOwn) {
  execute("CREATE SCHEMA stock AUTHORIZATION shop");
  StockService service(shop.uri() + "?schema=stock", shop.manager(), Way::conditionalUpdate);
  EXPECT_THAT(refusalOf<ConfigError>([&] { (void)service.level("pen"); }),
              HasSubstr("does not exist (42P01)"));
  service.createSchema();
  service.restock("pen", 3);
  EXPECT_EQ(service.deduct("pen", 1, "order"), Deduction::deducted);
  EXPECT_EQ(service.level("pen"), 2);
  EXPECT_EQ(shop.orders("pen"), 0) << "those of the other schema";
}

TEST_F(PostgresStock, SellsWhateverTheServersSettingsAre) {
  for (const char* setting :
       {"default_transaction_isolation = serializable", "bytea_output = escape",
        "standard_conforming_strings = off", "search_path = pg_catalog", "client_min_messages = error",
        "lock_timeout = 1", "idle_in_transaction_session_timeout = 1", "synchronous_commit = off",
        "TimeZone = 'Pacific/Apia'", "IntervalStyle = iso_8601", "lc_messages = 'C'"}) {
    execute("ALTER ROLE shop IN DATABASE " + databaseName() + " SET " + setting);
  }
  expectSells(shop.uri());
}

TEST_F(PostgresStock, SellsBehindAPoolerThatGivesEachTransactionAnotherSession) {
  execute("ALTER ROLE shop IN DATABASE " + databaseName() + " SET search_path = pg_catalog");
  const PgBouncer pooler("shop", databaseName(), serverOf(Backend::postgres).port());
  const std::string uri = shop.uriBy(pooler.port);
  StockService service(uri, shop.manager(), Way::conditionalUpdate, {.operationTimeout = 20s});
  EXPECT_TRUE(waitUntil([&] {
    try {
      service.restock("pen", 200, "delivery");
      return true;
    } catch (const StoreUnavailable&) {
      return false;  // The pooler does not listen yet.
    }
  }));
  expectSells(uri);
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&, caller] {
        StockService mine(uri, shop.manager(), Way::conditionalUpdate, {.operationTimeout = 20s});
        for (int order = 0; order < 25; ++order) {
          const std::string id = std::to_string(caller) + "-" + std::to_string(order);
          EXPECT_EQ(mine.deduct("pen", 1, id), Deduction::deducted);
        }
      });
    }
  }
  EXPECT_EQ(service.level("pen"), 100);
  EXPECT_EQ(shop.sold("pen"), 100);
  EXPECT_TRUE(service.checkLedger().empty());
}

TEST_F(PostgresStock, EndsASessionThatIsSilentInATransactionAndNoOther) {
  inventory::Database database(shop.uri(), {.operationTimeout = 7s, .sessions = 1});
  const auto setting = [&](const std::string& name) {
    inventory::Transaction transaction = database.begin();
    return std::get<std::string>(
        transaction.select("SELECT current_setting('" + name + "')", {}).value().front());
  };
  EXPECT_EQ(setting("idle_in_transaction_session_timeout"), "7s");
  EXPECT_EQ(setting("lock_timeout"), "7s");
  EXPECT_EQ(setting("statement_timeout"), "15s");
  EXPECT_EQ(setting("transaction_isolation"), "read committed");
}

// A sub-select sees the rows as they were when its statement began, which may be before it has waited for a
// row: what an order leaves must be that of the row.
TEST_F(PostgresStock, AnOrderThatHasWaitedForTheRowLeavesWhatTheRowSays) {
  StockService service = shop.service(Way::conditionalUpdate, {.operationTimeout = 20s});
  service.restock("pen", 10);
  Poco::Data::Session other = shop.session();
  other.begin();
  other << "UPDATE lockkeeper_stock SET level = 5, version = version + 1 WHERE sku = 'pen'", now;
  auto order = std::async(std::launch::async, [&] { return service.deduct("pen", 2, "order"); });
  auto cart = std::async(std::launch::async, [&] { return service.reserve({{"pen", 1}}, 1min, "cart"); });
  EXPECT_TRUE(waitUntil([&] { return shop.rowLockWaits() == 2; }));
  other.commit();
  EXPECT_EQ(order.get(), Deduction::deducted);
  EXPECT_EQ(cart.get().state, ReservationState::held);
  EXPECT_EQ(shop.level("pen"), 2);
  std::vector<std::int64_t> levels;
  for (const auto& each : service.ledger("pen", 2)) levels.push_back(each.levelAfter.value());
  EXPECT_THAT(levels, ::testing::Contains(2));
  EXPECT_THAT(levels, ::testing::AnyOf(::testing::Contains(3), ::testing::Contains(4)));
}

// Its row cannot be locked before it is committed.
TEST_F(PostgresStock, WhatIsBeingCommittedIsWaitedFor) {
  inventory::Database database(shop.uri(), {.operationTimeout = 20s});
  Poco::Data::Session other = shop.session();
  for (const bool commits : {true, false}) {
    const std::string id = commits ? "committed" : "rolled back";
    other.begin();
    other << "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES ('" + id +
                 "', 'pen', 1, 7)",
        now;
    auto attempt = std::async(std::launch::async, [&] { return inventory::writtenBy(database, id); });
    EXPECT_TRUE(waitUntil([&] { return shop.rowLockWaits() == 1; }));
    commits ? other.commit() : other.rollback();
    EXPECT_EQ(attempt.get(), commits ? std::optional<std::int64_t>(7) : std::nullopt);
    EXPECT_EQ(shop.booked(id), commits);
  }
}

}  // namespace
}  // namespace lockkeeper::test
