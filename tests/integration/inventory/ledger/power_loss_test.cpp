// The power is cut while customers shop: what the server had not synced is gone. What was told is still so.

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "database_server.h"
#include "lockkeeper/error.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "power_loss.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::Deduction;
using inventory::ReservationState;
using inventory::StockService;
using inventory::Way;

constexpr std::int64_t stocked = 100'000;

/// What customers were told of their carts and orders.
struct Answers {
  std::mutex mutex;
  std::map<std::string, ReservationState> carts;
  std::map<std::string, Deduction> orders;
  std::atomic<std::size_t> count = 0;
};

class PowerCut : public ::testing::TestWithParam<Brand> {
 protected:
  void SetUp() override {
    service.createSchema();
    for (const char* sku : {"pen", "ink"}) service.restock(sku, stocked, sku);
  }

  /// Until the power goes.
  void shop(const std::string& name) {
    for (int number = 0;; ++number) {
      const std::string id = name + "-" + std::to_string(number);
      try {
        ReservationState state = service.reserve({{"pen", 2}, {"ink", 1}}, 1h, id).state;
        if (number % 3 == 0) state = service.confirm(id);
        if (number % 3 == 1) state = service.cancel(id);
        {
          const std::lock_guard held(answers.mutex);
          answers.carts[id] = state;
        }
        const Deduction ordered = service.deduct("pen", 1, id);
        const std::lock_guard held(answers.mutex);
        answers.orders[id] = ordered;
        ++answers.count;
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::config) << error.what();
        return;
      }
    }
  }

  void shopUntilThePowerGoes() {
    const std::string data = server.ask("SELECT @@datadir");
    {
      std::vector<std::jthread> customers;
      for (const char* name : {"a", "b", "c"}) {
        customers.emplace_back([this, name] { shop(name); });
      }
      EXPECT_TRUE(waitUntil([&] { return answers.count > 60; }, 2min));
      server.kill();
    }
    power.strike(data);
    server.restart();
  }

  PowerLoss power;
  DatabaseServer server{GetParam(), {"--innodb-flush-log-at-trx-commit=1"}, power.environment()};
  const std::string database = server.newDatabase();
  LockManager manager{std::make_shared<MemoryDriver>()};
  StockService service{server.uri(database), manager, Way::conditionalUpdate, {.operationTimeout = 20s}};
  Answers answers;
};

TEST_P(PowerCut, LosesNothingThatWasTold) {
  shopUntilThePowerGoes();
  for (const auto& [id, state] : answers.carts) {
    EXPECT_EQ(service.reserve({{"pen", 2}, {"ink", 1}}, 1h, id).state, state) << id;
  }
  for (const auto& [id, ordered] : answers.orders) {
    EXPECT_EQ(ordered, Deduction::deducted) << id;
    EXPECT_EQ(service.deduct("pen", 1, id), Deduction::duplicate) << id;
  }
  EXPECT_THAT(service.checkLedger(), ::testing::IsEmpty());
  const std::string books = database + ".lockkeeper_";
  for (const std::string sku : {"pen", "ink"}) {
    const std::string ofSku = " WHERE sku = '" + sku + "'";
    EXPECT_EQ(server.ask("SELECT (SELECT level FROM " + books + "stock" + ofSku +
                         ") + (SELECT COALESCE(SUM(quantity), 0) FROM " + books + "orders" + ofSku +
                         ") + (SELECT COALESCE(SUM(quantity), 0) FROM " + books + "reservations" + ofSku +
                         " AND state IN ('held', 'confirmed'))"),
              std::to_string(stocked))
        << sku;
  }
}

// Which shows that the power is really cut in the test above.
TEST_P(PowerCut, LosesWhatWasToldByAServerThatFlushesLater) {
  // Once in a quarter of an hour.
  server.execute("SET GLOBAL innodb_flush_log_at_timeout = 900");
  server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  shopUntilThePowerGoes();
  std::size_t lost = 0;
  for (const auto& [id, ordered] : answers.orders) {
    lost += service.deduct("pen", 1, id) == Deduction::deducted ? 1 : 0;
  }
  EXPECT_GT(lost, 0U) << "of " << answers.orders.size();
  EXPECT_THAT(service.checkLedger(), ::testing::IsEmpty()) << "whole transactions are lost";
}

INSTANTIATE_TEST_SUITE_P(All, PowerCut, ::testing::ValuesIn(allBrands),
                         [](const auto& each) { return std::string(nameOf(each.param)); });

}  // namespace
}  // namespace lockkeeper::test
