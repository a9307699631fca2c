// Every change of stock is a row of the ledger, once for its id, and their sum is what is in stock.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <future>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "fault_proxy.h"
#include "shop.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::Deduction;
using inventory::LedgerEntry;
using inventory::Restock;
using inventory::Return;
using inventory::StockOptions;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::now;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// "restock r1 +5 = 5".
std::string textOf(const LedgerEntry& entry) {
  return entry.reason + " " + entry.id + " " + (entry.amount < 0 ? "" : "+") + std::to_string(entry.amount) +
         (entry.orderId.empty() ? "" : " of " + entry.orderId) + " = " +
         (entry.levelAfter ? std::to_string(*entry.levelAfter) : "unknown");
}

/// Those of one moment in some order of theirs, so all by their text.
std::vector<std::string> entriesOf(StockService& service, const std::string& sku) {
  std::vector<std::string> texts;
  for (const LedgerEntry& each : service.ledger(sku)) texts.push_back(textOf(each));
  std::ranges::sort(texts);
  return texts;
}

void expectBalance(Shop& shop, StockService& service, const std::string& sku) {
  EXPECT_EQ(shop.ledger(sku), shop.level(sku));
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

class LedgerOfWays : public ::testing::TestWithParam<std::tuple<Backend, Way>> {};

TEST_P(LedgerOfWays, HasEveryChangeWithTheLevelThatItLeft) {
  Shop shop(std::get<Backend>(GetParam()));
  StockService service = shop.service(std::get<Way>(GetParam()), {.who = "till 1"});
  const std::string strange("o\0'?\xff", 5);
  EXPECT_EQ(service.restock("pen", 5, "r1"), Restock::restocked);
  EXPECT_EQ(service.deduct("pen", 2, "o1"), Deduction::deducted);
  EXPECT_EQ(service.deduct("pen", 9, "o2"), Deduction::soldOut);
  EXPECT_EQ(service.takeBack("o1", "pen", 1, "b1"), Return::returned);
  EXPECT_EQ(service.restock("pen", 7, strange), Restock::restocked);
  EXPECT_EQ(service.deduct("pen", 3, strange), Deduction::deducted);
  EXPECT_THAT(entriesOf(service, "pen"),
              ElementsAre("order " + strange + " -3 = 8", "order o1 -2 = 3",
                          "restock " + strange + " +7 = 11", "restock r1 +5 = 5", "return b1 +1 of o1 = 4"));
  const auto today = std::chrono::system_clock::now();
  for (const LedgerEntry& each : service.ledger("pen")) {
    EXPECT_EQ(each.who, "till 1");
    ASSERT_TRUE(each.at);
    EXPECT_TRUE(*each.at > today - 1h && *each.at < today + 1h);
  }
  EXPECT_EQ(service.ledger("pen", 2).size(), 2U);
  EXPECT_THAT(service.ledger("nothing"), IsEmpty());
  expectBalance(shop, service, "pen");
}

INSTANTIATE_TEST_SUITE_P(All, LedgerOfWays,
                         ::testing::Combine(::testing::ValuesIn(allBackends), ::testing::ValuesIn(allWays)),
                         [](const auto& each) {
                           return nameOf(std::get<Backend>(each.param)) + nameOf(std::get<Way>(each.param));
                         });

class Ledger : public ::testing::TestWithParam<Backend> {
 protected:
  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate);
};

TEST_P(Ledger, RestocksOnceForEachId) {
  EXPECT_EQ(service.restock("pen", 5, "r1"), Restock::restocked);
  EXPECT_EQ(service.restock("pen", 5, "r1"), Restock::duplicate);
  EXPECT_EQ(service.restock("ink", 5, "r1"), Restock::duplicate);
  EXPECT_EQ(service.level("ink"), std::nullopt) << "nothing has changed";
  EXPECT_EQ(service.restock("ink", 0, "R1"), Restock::restocked);
  service.restock("ink", 1);
  service.restock("ink", 1);
  EXPECT_EQ(shop.level("pen"), 5);
  EXPECT_EQ(shop.level("ink"), 2);
  expectBalance(shop, service, "ink");
}

TEST_P(Ledger, TakesBackOnceForEachIdAndNeverMoreThanWasSold) {
  service.restock("pen", 9, "r1");
  service.restock("ink", 9, "r2");
  ASSERT_EQ(service.deduct("pen", 5, "o1"), Deduction::deducted);
  ASSERT_EQ(service.deduct("pen", 1, "o2"), Deduction::deducted);
  EXPECT_EQ(service.takeBack("o1", "pen", 6, "b1"), Return::tooMany);
  EXPECT_EQ(service.takeBack("o1", "pen", 3, "b1"), Return::returned);
  EXPECT_EQ(service.takeBack("o1", "pen", 3, "b1"), Return::duplicate);
  EXPECT_EQ(service.takeBack("o2", "pen", 1, "b1"), Return::duplicate);
  EXPECT_EQ(service.takeBack("o1", "pen", 3, "b2"), Return::tooMany);
  EXPECT_EQ(service.takeBack("o1", "pen", 2, "b2"), Return::returned);
  EXPECT_EQ(service.takeBack("o1", "pen", 1, "b3"), Return::tooMany);
  EXPECT_EQ(service.takeBack("o1", "ink", 1, "b3"), Return::unknownOrder);
  EXPECT_EQ(service.takeBack("o3", "pen", 1, "b3"), Return::unknownOrder);
  EXPECT_EQ(service.takeBack("o1", "nothing", 1, "b3"), Return::unknownOrder);
  EXPECT_EQ(shop.level("pen"), 9 - 1);
  EXPECT_EQ(shop.level("ink"), 9);
  expectBalance(shop, service, "pen");
}

TEST_P(Ledger, WhatCameBackIsForSaleAtOnce) {
  service.restock("pen", 2, "r1");
  ASSERT_EQ(service.deduct("pen", 2, "o1"), Deduction::deducted);
  ASSERT_EQ(service.deduct("pen", 1, "o2"), Deduction::soldOut);
  ASSERT_EQ(service.takeBack("o1", "pen", 1, "b1"), Return::returned);
  EXPECT_EQ(service.deduct("pen", 1, "o2"), Deduction::deducted);
}

TEST_P(Ledger, TellsWhatWasWrittenPastIt) {
  service.restock("pen", 5, "r1");
  service.restock("ink", 5, "r2");
  const std::string strange("a\0b", 3);
  service.restock(strange, 1, "r3");
  EXPECT_THAT(service.checkLedger(), IsEmpty());
  shop.session() << "UPDATE lockkeeper_stock SET level = level + 2 WHERE sku <> 'ink'", now;
  const auto found = service.checkLedger();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].sku, strange);
  EXPECT_EQ(found[1].sku, "pen");
  EXPECT_EQ(found[1].level, 7);
  EXPECT_EQ(found[1].ledger, 5);
}

TEST_P(Ledger, RefusesBadInputByName) {
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string tooLong(65, 'x');
  EXPECT_EQ(message([&] { service.restock("pen", 1, ""); }),
            "restockId is '' (0 bytes): 1 to 64 bytes are allowed");
  EXPECT_EQ(message([&] { service.restock("pen", 1'000'001, "r"); }),
            "quantity is 1000001: 0 to 1000000 are allowed");
  EXPECT_EQ(message([&] { (void)service.takeBack("", "pen", 1, "b"); }),
            "orderId is '' (0 bytes): 1 to 64 bytes are allowed");
  EXPECT_EQ(message([&] { (void)service.takeBack("o", "pen", 0, "b"); }),
            "quantity is 0: 1 to 1000000 are allowed");
  EXPECT_THAT(message([&] { (void)service.takeBack("o", "pen", 1, tooLong); }),
              ::testing::StartsWith("returnId is 'xxx"));
  EXPECT_EQ(message([&] { (void)service.ledger("pen", 0); }), "most is 0: 1 to 100000 are allowed");
  EXPECT_THAT(message([&] { shop.service(Way::conditionalUpdate, {.who = tooLong}); }),
              ::testing::HasSubstr("(65 bytes): 0 to 64 bytes are allowed"));
  EXPECT_EQ(service.level("pen"), std::nullopt);
}

TEST_P(Ledger, HasTheLevelsOfOrdersThatAreBookedTogether) {
  constexpr int threads = 8;
  constexpr int ordersOfThread = 25;
  service.restock("pen", threads * ordersOfThread, "r1");
  {
    std::vector<std::jthread> callers;
    for (int thread = 0; thread < threads; ++thread) {
      callers.emplace_back([this, thread] {
        for (int order = 0; order < ordersOfThread; ++order) {
          const std::string id = std::to_string(thread) + "-" + std::to_string(order);
          EXPECT_EQ(service.deduct("pen", 1, id), Deduction::deducted);
        }
      });
    }
  }
  std::set<std::int64_t> levels;
  for (const LedgerEntry& each : service.ledger("pen", 1000)) levels.insert(each.levelAfter.value());
  EXPECT_EQ(levels.size(), threads * ordersOfThread + 1U) << "each left another one";
  EXPECT_EQ(*levels.begin(), 0);
  expectBalance(shop, service, "pen");
}

TEST_P(Ledger, IsExactWhenTheSameIdsComeAtTheSameTime) {
  constexpr int callers = 6;
  constexpr int rounds = 5;
  for (const char* sku : {"pen", "ink"}) service.restock(sku, 100, sku);
  ASSERT_EQ(service.deduct("pen", 10, "o"), Deduction::deducted);
  for (int round = 0; round < rounds; ++round) {
    const std::string id = std::to_string(round);
    std::barrier together(callers);
    std::vector<std::future<std::pair<Restock, Return>>> answers;
    for (int i = 0; i < callers; ++i) {
      answers.push_back(std::async(std::launch::async, [&, i] {
        StockService mine = shop.service(Way::conditionalUpdate, {.operationTimeout = 20s});
        together.arrive_and_wait();
        const Restock restock = mine.restock(i % 2 == 0 ? "pen" : "ink", 1, id);
        return std::pair(restock, mine.takeBack("o", "pen", 3, id + (i % 2 == 0 ? "a" : "b")));
      }));
    }
    int restocked = 0;
    for (auto& each : answers) restocked += each.get().first == Restock::restocked ? 1 : 0;
    EXPECT_EQ(restocked, 1);
  }
  EXPECT_EQ(shop.level("pen") + shop.level("ink"), 200 - 10 + rounds + 9) << "three times three of ten";
  expectBalance(shop, service, "pen");
}

/// Tables of a version that had no ledger and no buckets, with two of five pens sold.
class FormerLedger : public Ledger {
 protected:
  FormerLedger() {
    shop.session() << "DROP TABLE lockkeeper_changes", now;
    shop.session() << "DROP TABLE lockkeeper_buckets", now;
    shop.session() << std::string("DROP INDEX lockkeeper_orders_ledger") +
                          (GetParam() == Backend::sqlite ? "" : " ON lockkeeper_orders"),
        now;
    shop.session() << "ALTER TABLE lockkeeper_stock DROP COLUMN buckets", now;
    for (const char* each : {"written_at", "written_by", "level_after"}) {
      shop.session() << std::string("ALTER TABLE lockkeeper_orders DROP COLUMN ") + each, now;
    }
    shop.session() << "INSERT INTO lockkeeper_stock (sku, level) VALUES ('pen', 3), ('none', 0)", now;
    shop.session() << "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) "
                      "VALUES ('old', 'pen', 2, 1)",
        now;
  }
};

TEST_P(FormerLedger, IsOpenedWithWhatThereWas) {
  service.createSchema();
  service.createSchema();
  EXPECT_THAT(entriesOf(service, "pen"), ElementsAre("opening pen +5 = 3", "order old -2 = unknown"));
  EXPECT_FALSE(service.ledger("pen").back().at);
  EXPECT_EQ(service.deduct("pen", 1, "new"), Deduction::deducted);
  EXPECT_EQ(service.takeBack("old", "pen", 2, "b1"), Return::returned);
  EXPECT_EQ(service.restock("none", 4, "r1"), Restock::restocked);
  EXPECT_TRUE(service.ledger("pen").front().at);
  EXPECT_TRUE(service.split("pen", 2));
  EXPECT_TRUE(service.split("pen", 1));
  expectBalance(shop, service, "pen");
  shop.session() << "UPDATE lockkeeper_stock SET level = level + 1", now;
  service.createSchema();
  for (const char* sku : {"pen", "none"}) EXPECT_EQ(service.restock(sku, 1, sku), Restock::restocked);
  EXPECT_EQ(service.checkLedger().size(), 2U) << "what is wrong is not made right by opening it again";
}

TEST_P(FormerLedger, IsOpenedByARestockThatComesFirst) {
  service.createSchema();
  shop.session() << "DELETE FROM lockkeeper_changes", now;
  EXPECT_EQ(service.restock("pen", 4, "r1"), Restock::restocked);
  service.createSchema();
  EXPECT_THAT(entriesOf(service, "pen"),
              ElementsAre("opening pen +5 = 7", "order old -2 = unknown", "restock r1 +4 = 7"));
  expectBalance(shop, service, "pen");
}

TEST_P(FormerLedger, IsSoldFromByFormerVersionsThatStillRun) {
  service.createSchema();
  shop.session() << "UPDATE lockkeeper_stock SET level = level - 1 WHERE sku = 'pen'", now;
  shop.session() << "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) "
                    "VALUES ('late', 'pen', 1, 1)",
      now;
  expectBalance(shop, service, "pen");
}

INSTANTIATE_TEST_SUITE_P(All, Ledger, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });
// No former version made tables on PostgreSQL.
INSTANTIATE_TEST_SUITE_P(All, FormerLedger,
                         ::testing::Values(Backend::sqlite, Backend::mariadb, Backend::mysql),
                         [](const auto& each) { return nameOf(each.param); });

class LedgerFaults : public Ledger {
 protected:
  /// Cuts the reply to `change` after each of its bytes in turn: in the end it is done, once.
  void endInTheTruth(const std::function<bool(StockService&, const std::string& id)>& change,
                     std::int64_t amount) {
    service.restock("pen", 10'000, "first");
    ASSERT_EQ(service.deduct("pen", 10'000, "o"), Deduction::deducted);
    ASSERT_TRUE(change(distant, "connect"));
    proxy.passThrough();
    ASSERT_TRUE(change(distant, "measure"));
    const std::size_t replyBytes = proxy.replyBytes();
    std::int64_t times = 2;
    for (std::size_t bytes = 0; bytes < replyBytes; bytes += 3, ++times) {
      proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
      EXPECT_TRUE(change(distant, std::to_string(bytes))) << "cut after " << bytes << " bytes";
      EXPECT_EQ(proxy.fired(), 1U) << "nothing was cut after " << bytes << " bytes";
    }
    EXPECT_EQ(shop.level("pen"), times * amount);
    expectBalance(shop, service, "pen");
  }

  FaultProxy proxy{serverOf(GetParam()).port()};
  StockService distant{
      shop.uriBy(proxy.port()), shop.manager(), Way::conditionalUpdate, {.operationTimeout = 1s}};
};

TEST_P(LedgerFaults, EveryCutReplyToARestockEndsInTheTruth) {
  endInTheTruth([](StockService& stock,
                   const std::string& id) { return stock.restock("pen", 3, id) == Restock::restocked; },
                3);
}

TEST_P(LedgerFaults, EveryCutReplyToAReturnEndsInTheTruth) {
  endInTheTruth([](StockService& stock,
                   const std::string& id) { return stock.takeBack("o", "pen", 2, id) == Return::returned; },
                2);
}

INSTANTIATE_TEST_SUITE_P(All, LedgerFaults, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
