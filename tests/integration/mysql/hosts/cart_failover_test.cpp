// Carts and orders while the primary of a group dies: what was told is so on the next one.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "replication_group_of_three.h"

namespace lockkeeper::test {
namespace {

using inventory::Deduction;
using inventory::ReservationState;
using inventory::Restock;
using inventory::StockService;
using inventory::Way;

constexpr std::int64_t stocked = 100'000;
constexpr auto skus = {"pen", "ink"};

class StockOfAGroup : public ReplicationGroupOfThree {
 protected:
  LockManager manager{std::make_shared<MemoryDriver>()};
  StockService service{group.uri("mysql", database), manager, Way::conditionalUpdate};
};

/// What customers were told of their carts and orders.
struct Answers {
  std::mutex mutex;
  std::map<std::string, ReservationState> carts;
  std::map<std::string, Deduction> orders;
  std::atomic<std::size_t> count = 0;
  std::atomic<bool> stop = false;
};

void shop(StockService& service, const std::string& name, Answers& answers) {
  for (int number = 0; !answers.stop; ++number) {
    const std::string id = name + "-" + std::to_string(number);
    try {
      ReservationState state = service.reserve({{"pen", 2}, {"ink", 1}}, 1h, id).state;
      if (number % 3 == 0) state = service.confirm(id);
      if (number % 3 == 1) state = service.cancel(id);
      const Deduction ordered = service.deduct("pen", 1, id);
      const std::lock_guard held(answers.mutex);
      answers.carts[id] = state;
      answers.orders[id] = ordered;
      ++answers.count;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::config) << error.what();
    }
  }
}

TEST_F(StockOfAGroup, IsThereAfterItsPrimaryWasKilled) {
  succeedsInTheEnd([&] { service.createSchema(); });
  for (const char* sku : skus) succeedsInTheEnd([&] { (void)service.restock(sku, stocked, sku); });
  Answers answers;
  std::vector<std::jthread> customers;
  for (const char* name : {"a", "b"}) customers.emplace_back([&, name] { shop(service, name, answers); });
  const std::shared_ptr<void> ends(nullptr, [&](void*) { answers.stop = true; });
  EXPECT_TRUE(waitUntil([&] { return answers.count > 20; }, failoverBound));
  const std::size_t killed = group.primary();
  group.node(killed).kill();
  const std::shared_ptr<void> comesBack(nullptr, [&](void*) { group.rejoin(killed); });
  const std::size_t before = answers.count;
  EXPECT_TRUE(waitUntil([&] { return answers.count > before + 20; }, failoverBound))
      << "nothing is sold after the failover";
  answers.stop = true;
  customers.clear();

  for (const auto& cart : answers.carts) {
    const std::string& id = cart.first;
    succeedsInTheEnd([&] {
      EXPECT_EQ(service.reserve({{"pen", 2}, {"ink", 1}}, 1h, id).state, cart.second) << id;
    });
  }
  for (const auto& order : answers.orders) {
    const std::string& id = order.first;
    EXPECT_EQ(order.second, Deduction::deducted) << id;
    succeedsInTheEnd([&] { EXPECT_EQ(service.deduct("pen", 1, id), Deduction::duplicate) << id; });
  }
  succeedsInTheEnd([&] { EXPECT_THAT(service.checkLedger(), ::testing::IsEmpty()); });
  DatabaseServer& primary = group.node(group.primary());
  const std::string books = database + ".lockkeeper_";
  for (const std::string sku : skus) {
    const std::string ofSku = " WHERE sku = '" + sku + "'";
    EXPECT_EQ(primary.ask("SELECT (SELECT level FROM " + books + "stock" + ofSku +
                          ") + (SELECT COALESCE(SUM(quantity), 0) FROM " + books + "orders" + ofSku +
                          ") + (SELECT COALESCE(SUM(quantity), 0) FROM " + books + "reservations" + ofSku +
                          " AND state IN ('held', 'confirmed'))"),
              std::to_string(stocked))
        << sku;
    succeedsInTheEnd([&] { EXPECT_EQ(service.restock(sku, 1, sku), Restock::duplicate); });
  }
}

// Without a table to read, too, a log-in waits for the group.
TEST_F(StockOfAGroup, GetsItsTablesFromAPrimaryThatHasItsGroupOnly) {
  const std::size_t alone = group.primary();
  const std::vector<std::size_t> others{after(alone), after(after(alone))};
  for (const std::size_t each : others) group.node(each).pause();
  try {
    service.createSchema();
    ADD_FAILURE() << "made";
  } catch (const StoreUnavailable& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("none of its hosts has let us in"));
  }
  for (const std::size_t each : others) group.node(each).resume();
  group.awaitAll();
  succeedsInTheEnd([&] { service.createSchema(); });
  EXPECT_EQ(service.restock("pen", 5, "pen"), Restock::restocked);
}

}  // namespace
}  // namespace lockkeeper::test
