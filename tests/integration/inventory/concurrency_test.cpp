// Many threads at one article. The books must balance: what was there = what is left + what was sold.

#include <Poco/Data/Statement.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "shop.h"

namespace lockkeeper::test {
namespace {

using inventory::Deduction;
using inventory::StockOptions;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::bind;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

constexpr int rushThreads = 8;
constexpr int ordersOfRushThread = 12;

struct Counts {
  std::mutex mutex;
  std::map<Deduction, int> of;

  int operator[](Deduction deduction) {
    std::lock_guard guard(mutex);
    return of[deduction];
  }
  void add(Deduction deduction) {
    std::lock_guard guard(mutex);
    ++of[deduction];
  }
};

using Deduct = std::function<Deduction(int thread, int order)>;

/// Sends rushThreads * ordersOfRushThread orders; busy and conflicting ones again until they are neither.
void rush(const Deduct& deduct, Counts& counts) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < rushThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int order = 0; order < ordersOfRushThread; ++order) {
        Deduction deduction = Deduction::conflict;
        do {
          deduction = deduct(thread, order);
          counts.add(deduction);
        } while (deduction == Deduction::busy || deduction == Deduction::conflict);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

std::string orderId(int thread, int order) { return std::to_string(thread) + "-" + std::to_string(order); }

class ConcurrencyTest : public ::testing::TestWithParam<std::tuple<Backend, Way>> {
 protected:
  Shop shop{std::get<Backend>(GetParam())};
  Way way = std::get<Way>(GetParam());
  StockService service = shop.service(way, {.lockWait = std::chrono::seconds{30}});
  Counts counts;
};

TEST_P(ConcurrencyTest, NeverSellsMoreThanThereIs) {
  constexpr int stock = 100;
  service.restock("pen", stock);
  rush([&](int thread, int order) { return service.deduct("pen", 1 + order % 3, orderId(thread, order)); },
       counts);
  EXPECT_GT(counts[Deduction::soldOut], 0) << "more was ordered than there is";
  EXPECT_EQ(shop.orders("pen"), counts[Deduction::deducted]);
  EXPECT_GE(shop.level("pen"), 0);
  EXPECT_EQ(shop.sold("pen") + shop.level("pen"), stock);
}

TEST_P(ConcurrencyTest, BooksConcurrentDuplicatesOnce) {
  constexpr int stock = 1000;
  service.restock("pen", stock);
  rush([&](int, int order) { return service.deduct("pen", 2, orderId(0, order)); }, counts);
  EXPECT_EQ(counts[Deduction::deducted], ordersOfRushThread);
  EXPECT_EQ(counts[Deduction::duplicate], (rushThreads - 1) * ordersOfRushThread);
  EXPECT_EQ(shop.sold("pen"), 2 * ordersOfRushThread);
  EXPECT_EQ(shop.level("pen"), stock - 2 * ordersOfRushThread);
}

INSTANTIATE_TEST_SUITE_P(All, ConcurrencyTest,
                         ::testing::Combine(::testing::ValuesIn(allBackends), ::testing::ValuesIn(allWays)),
                         [](const auto& each) {
                           return nameOf(std::get<Backend>(each.param)) + nameOf(std::get<Way>(each.param));
                         });

class BrokenLocksTest : public ConcurrencyTest {};

TEST_P(BrokenLocksTest, BalancesTheBooksWhileLocksAreTakenAway) {
  constexpr int stockOfRound = 100;
  constexpr int leastBroken = 20;
  constexpr int mostRounds = 200;
  std::atomic<bool> done = false;
  std::atomic<int> broken = 0;
  std::thread breaker([&] {
    while (!done) {
      if (shop.locks().breakLock("stock:pen", systemClock()->now() + std::chrono::seconds{1})) ++broken;
      std::this_thread::yield();
    }
  });
  int rounds = 0;
  for (; rounds == 0 || (broken < leastBroken && rounds < mostRounds); ++rounds) {
    service.restock("pen", stockOfRound);
    rush(
        [&](int thread, int order) {
          return service.deduct("pen", 1 + order % 3, std::to_string(rounds) + ":" + orderId(thread, order));
        },
        counts);
  }
  done = true;
  breaker.join();
  EXPECT_GE(broken, leastBroken) << "hardly a lock was taken away: this has shown nothing";
  EXPECT_EQ(shop.orders("pen"), counts[Deduction::deducted]);
  EXPECT_GE(shop.level("pen"), 0);
  EXPECT_EQ(shop.sold("pen") + shop.level("pen"), stockOfRound * rounds);
}

INSTANTIATE_TEST_SUITE_P(All, BrokenLocksTest,
                         ::testing::Combine(::testing::ValuesIn(allBackends),
                                            ::testing::Values(Way::fencedRow, Way::lockedOptimistic)),
                         [](const auto& each) {
                           return nameOf(std::get<Backend>(each.param)) + nameOf(std::get<Way>(each.param));
                         });

/// The read-check-write of a shop without a lock.
Deduction naiveDeduct(const Shop& shop, const std::string& id) {
  Poco::Data::Session session = shop.session();
  std::int64_t level = 0;
  session << "SELECT level FROM lockkeeper_stock WHERE sku = 'pen'", into(level), now;
  if (level < 1) return Deduction::soldOut;
  session << shop.marked("UPDATE lockkeeper_stock SET level = ? WHERE sku = 'pen'"), bind(level - 1), now;
  session << shop.marked(
      "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES (?, 'pen', 1, 0)"),
      bind(id), now;
  return Deduction::deducted;
}

class NaiveShopTest : public ::testing::TestWithParam<Backend> {};

// Proves that the tests above would see an oversell.
TEST_P(NaiveShopTest, OversellsInTheSameRush) {
  Shop shop(GetParam());
  StockService service = shop.service(Way::conditionalUpdate);
  constexpr int stock = 20;
  for (int round = 0; round < 50; ++round) {
    const std::int64_t before = shop.sold("pen");
    service.restock("pen", stock);
    Counts counts;
    rush([&](int thread,
             int order) { return naiveDeduct(shop, std::to_string(round) + ":" + orderId(thread, order)); },
         counts);
    if (shop.sold("pen") - before + shop.level("pen") > stock) return;
  }
  FAIL() << "fifty rounds without an oversell: the rush is no rush";
}

INSTANTIATE_TEST_SUITE_P(All, NaiveShopTest, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
