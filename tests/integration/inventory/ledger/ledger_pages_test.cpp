// The ledger of an article with many orders: what reads it is short, or works in pages and keeps nobody
// waiting.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <chrono>
#include <future>
#include <stop_token>
#include <string>
#include <vector>

#include "fault_proxy.h"
#include "lockkeeper/error.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::Deduction;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;
using ::testing::IsEmpty;

class LedgerPages : public ::testing::TestWithParam<Backend> {
 protected:
  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate);
};

// More than a page of two articles, whose rows alternate.
TEST_P(LedgerPages, AreAddedUp) {
  const std::string strange("z\0z", 3);
  service.restock("pen", 1, "pen");
  service.restock("ink", 1, "ink");
  service.restock(strange, 1, strange);
  shop.addOrders("pen", 25'000, "a");
  shop.addOrders("ink", 25'000, "a1-");
  shop.addExpired("pen", 21'000);
  EXPECT_THAT(service.checkLedger(), IsEmpty());
  shop.session() << "UPDATE lockkeeper_orders SET quantity = 2 WHERE order_id IN ('a1-17', 'a24999')", now;
  const auto found = service.checkLedger();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].sku, "ink");
  EXPECT_EQ(found[0].level, 1);
  EXPECT_EQ(found[0].ledger, 0);
  EXPECT_EQ(found[1].sku, "pen");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW((void)service.checkLedger(stop.get_token()), StoreUnavailable);
}

INSTANTIATE_TEST_SUITE_P(All, LedgerPages, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

/// Of servers.
class LedgerPagesOfServers : public LedgerPages {
 protected:
  std::int64_t rowsRead() {
    std::int64_t rows = 0;
    for (const char* each : {"first", "key", "last", "next", "prev", "rnd"}) {
      std::string name;
      std::string count;
      watching << "SHOW GLOBAL STATUS LIKE 'Handler_read_" + std::string(each) + "'", into(name), into(count),
          now;
      rows += std::stoll(count);
    }
    return rows;
  }

  FaultProxy proxy{serverOf(GetParam()).port()};
  StockService distant{
      shop.uriBy(proxy.port()), shop.manager(), Way::conditionalUpdate, {.operationTimeout = 1s}};
  Poco::Data::Session watching = shop.session();
};

using LedgerPagesOfTwoBrands = LedgerPagesOfServers;

TEST_P(LedgerPagesOfTwoBrands, TheLastEntriesAreReadAlone) {
  service.restock("pen", 30, "pen");
  shop.addOrders("pen", 30'000, "many");
  shop.addExpired("pen", 30'000);
  ASSERT_EQ(service.deduct("pen", 3, "last"), Deduction::deducted);
  (void)service.ledger("pen", 1);
  // The server counts new rows in the background, and chooses indexes by what it has counted.
  watching << "ANALYZE TABLE lockkeeper_orders, lockkeeper_changes", now;
  const std::int64_t before = rowsRead();
  const auto entries = service.ledger("pen", 20);
  EXPECT_LT(rowsRead() - before, 200);
  ASSERT_EQ(entries.size(), 20U);
  EXPECT_EQ(entries.front().amount, -3);
}

TEST_P(LedgerPagesOfServers, AreOfOneMomentWhileOthersSell) {
  service.restock("pen", 5, "pen");
  ASSERT_EQ(distant.level("pen"), 5);
  proxy.set({.kind = ProxyFault::Kind::step, .text = "lockkeeper_orders"});
  auto check = std::async(std::launch::async, [&] { return distant.checkLedger(); });
  EXPECT_TRUE(waitUntil([&] { return proxy.fired() == 1; })) << "it has seen the levels, and not the orders";
  EXPECT_EQ(service.deduct("pen", 2, "order"), Deduction::deducted);
  EXPECT_EQ(service.restock("ink", 2, "ink"), inventory::Restock::restocked);
  proxy.passThrough();
  EXPECT_THAT(check.get(), IsEmpty());
}

TEST_P(LedgerPagesOfServers, OneThatHasNoAnswerInTimeIsNotReadAgainAndCostsNoOtherSession) {
  for (const char* sku : {"pen", "ink"}) service.restock(sku, 5, sku);
  const auto both = [&] {
    proxy.set({.kind = ProxyFault::Kind::delay, .pause = 50ms});
    auto pen = std::async(std::launch::async, [&] { return distant.level("pen"); });
    const auto ink = distant.level("ink");
    EXPECT_EQ(pen.get(), ink);
    proxy.passThrough();
  };
  EXPECT_TRUE(waitUntil([&] {
    both();
    return proxy.connections() == 2;
  })) << "two sessions at least";
  proxy.set({.kind = ProxyFault::Kind::hold, .text = "lockkeeper_orders"});
  EXPECT_THROW((void)distant.ledger("pen"), StoreUnavailable);
  EXPECT_EQ(proxy.fired(), 1U);
  proxy.passThrough();
  EXPECT_EQ(distant.level("pen"), 5);
  EXPECT_EQ(proxy.connections(), 2U) << "the other one is still there";
  proxy.set({.kind = ProxyFault::Kind::hold, .text = "lockkeeper_orders"});
  EXPECT_THROW((void)distant.checkLedger(), StoreUnavailable);
  EXPECT_EQ(proxy.fired(), 1U);
}

INSTANTIATE_TEST_SUITE_P(All, LedgerPagesOfServers, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });
INSTANTIATE_TEST_SUITE_P(All, LedgerPagesOfTwoBrands, ::testing::ValuesIn(mysqlServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
