// Many threads order the same articles at random, twice with one id here and there, more than there is, and
// some nonsense: in the end the answers and the tables agree.

#include <Poco/Data/RecordSet.h>
#include <Poco/Data/Statement.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "lockkeeper/error.h"
#include "shop.h"

namespace lockkeeper::test {
namespace {

using inventory::Deduction;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

constexpr int threadCount = 16;
constexpr int ordersOfThread = 60;
constexpr unsigned differentIds = 600;  // of 960 orders
constexpr const char* skus[] = {"pen", "ink"};
constexpr std::int64_t stock = 150;
constexpr std::int64_t restocked = 50;

class CombinedOrders : public ::testing::TestWithParam<Backend> {
 protected:
  struct Answer {
    Deduction deduction;
    std::string sku;
    std::int64_t quantity;
  };

  void order(unsigned seed) {
    std::mt19937 random(seed);
    for (int count = 0; count < ordersOfThread; ++count) {
      const auto number = static_cast<unsigned>(random() % differentIds);
      const std::string id = std::to_string(number);
      const std::string sku = skus[number % 2];
      const std::int64_t quantity = 1 + number % 3;
      const bool known = isKnownAsBooked(id);
      if (random() % 20 == 0) {
        EXPECT_THROW((void)service.deduct(sku, 0, id), std::invalid_argument);
        EXPECT_THROW((void)service.deduct(sku, 1, std::string(65, 'x')), std::invalid_argument);
      }
      Deduction deduction = Deduction::conflict;
      while (deduction == Deduction::conflict) deduction = service.deduct(sku, quantity, id);
      const std::lock_guard guard(mutex);
      answers[id].push_back({deduction, sku, quantity});
      EXPECT_TRUE(!known || deduction == Deduction::duplicate) << id << " is " << toString(deduction);
    }
  }

  bool isKnownAsBooked(const std::string& id) {
    const std::lock_guard guard(mutex);
    const auto found = answers.find(id);
    return found != answers.end() && std::ranges::any_of(found->second, [](const Answer& each) {
             return each.deduction == Deduction::deducted || each.deduction == Deduction::duplicate;
           });
  }

  std::map<std::string, Answer> rows() const {
    std::map<std::string, Answer> rows;
    Poco::Data::Session session = shop.session();
    const Poco::Data::RecordSet all(session, "SELECT " + shop.textOf("order_id") + ", " + shop.textOf("sku") +
                                                 ", quantity FROM lockkeeper_orders");
    for (std::size_t i = 0; i < all.rowCount(); ++i) {
      rows[all.value(0, i).convert<std::string>()] = {Deduction::deducted,
                                                      all.value(1, i).convert<std::string>(),
                                                      all.value(2, i).convert<Poco::Int64>()};
    }
    return rows;
  }

  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, {.operationTimeout = std::chrono::seconds{20}});
  std::mutex mutex;
  std::map<std::string, std::vector<Answer>> answers;
};

TEST_P(CombinedOrders, AnswersAgreeWithTheTables) {
  for (const char* sku : skus) service.restock(sku, stock);
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < threadCount; ++thread) {
      threads.emplace_back([this, thread] { order(thread); });
    }
    service.restock("pen", restocked);
  }
  const auto booked = rows();
  std::size_t deducted = 0;
  std::map<Deduction, int> counts;
  for (const auto& [id, all] : answers) {
    int times = 0;
    for (const Answer& each : all) {
      ++counts[each.deduction];
      const auto row = booked.find(id);
      EXPECT_TRUE(each.deduction != Deduction::duplicate || row != booked.end()) << id;
      if (each.deduction != Deduction::deducted) continue;
      ++times;
      ASSERT_NE(row, booked.end()) << id;
      EXPECT_EQ(row->second.sku, each.sku) << id;
      EXPECT_EQ(row->second.quantity, each.quantity) << id;
    }
    EXPECT_LE(times, 1) << id << " was sold twice";
    deducted += static_cast<std::size_t>(times);
  }
  EXPECT_EQ(deducted, booked.size());
  for (const Deduction each : {Deduction::deducted, Deduction::duplicate, Deduction::soldOut}) {
    EXPECT_GT(counts[each], 0) << toString(each);
  }
  EXPECT_EQ(shop.level("pen") + shop.sold("pen"), stock + restocked);
  EXPECT_EQ(shop.level("ink") + shop.sold("ink"), stock);
  for (const char* sku : skus) EXPECT_EQ(shop.ledger(sku), shop.level(sku)) << sku;
}

TEST_P(CombinedOrders, OfAForkedChildAreRefused) {
  service.restock("pen", 2);
  ASSERT_EQ(service.deduct("pen", 1, "parent"), Deduction::deducted);
  const pid_t child = ::fork();
  if (child == 0) {
    int refused = 0;
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
             [&] { (void)service.deduct("pen", 1, "child"); }, [&] { (void)service.level("pen"); },
             [&] { (void)service.cancel("child"); }, [&] { service.restock("pen", 1); }}) {
      try {
        call();
      } catch (const ForkedError&) {
        ++refused;
      }
    }
    ::_exit(4 - refused);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(service.deduct("pen", 1, "later"), Deduction::deducted);
}

INSTANTIATE_TEST_SUITE_P(All, CombinedOrders, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
