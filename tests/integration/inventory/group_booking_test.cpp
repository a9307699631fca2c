// Orders that are booked as one transaction: each gets the answer that it would have got alone, whatever
// becomes of the connection.

#include "order/group_booking.h"

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "database/stock_tables.h"
#include "free_port.h"
#include "group_faults.h"
#include "shop.h"

namespace lockkeeper::test {
namespace {

using inventory::Database;
using inventory::Deduction;
using inventory::GroupBooking;
using inventory::KnownSplits;
using inventory::PlacedOrder;
using inventory::StockService;
using inventory::StockTables;
using inventory::Transaction;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Orders in the order in which they came.
class Group {
 public:
  Group& add(const std::string& orderId, std::int64_t quantity = 1, const std::string& sku = "pen") {
    orders_.push_back(PlacedOrder{.order = {sku, quantity, orderId, ++attempts_}});
    return *this;
  }

  Group& book(Database& database) {
    KnownSplits none(systemRandom());
    return book(database, none);
  }

  Group& book(Database& database, KnownSplits& splits) {
    std::vector<PlacedOrder*> orders;
    for (PlacedOrder& each : orders_) orders.push_back(&each);
    GroupBooking(database, splits, orders, Instant::max()).run();
    return *this;
  }

  /// "deducted", …, or the name of the error.
  Answers answers() const {
    Answers answers;
    for (const PlacedOrder& each : orders_) answers.push_back(answerOf(each));
    return answers;
  }

 private:
  static std::string answerOf(const PlacedOrder& order) {
    return order.failure ? nameOf(order.failure) : toString(order.result);
  }

  static inline std::int64_t attempts_ = 0;
  std::deque<PlacedOrder> orders_;
};

class GroupBookingTest : public ::testing::TestWithParam<Backend> {
 protected:
  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, impatient);
  Database database{shop.uri(), impatient};
};

TEST_P(GroupBookingTest, BooksAllWhenThereIsEnough) {
  service.restock("pen", 10);
  EXPECT_THAT(Group().add("a").add("b", 2).add("c", 7).book(database).answers(),
              ElementsAre("deducted", "deducted", "deducted"));
  EXPECT_EQ(shop.level("pen"), 0);
  EXPECT_EQ(shop.sold("pen"), 10);
}

TEST_P(GroupBookingTest, StockForSomeGoesToThoseWhoCameFirst) {
  service.restock("pen", 5);
  EXPECT_THAT(Group().add("a", 3).add("b", 3).add("c", 2).add("d", 1).book(database).answers(),
              ElementsAre("deducted", "sold out", "deducted", "sold out"));
  EXPECT_EQ(shop.level("pen"), 0);
  EXPECT_TRUE(shop.booked("a") && shop.booked("c"));
  EXPECT_EQ(shop.orders("pen"), 2);
}

TEST_P(GroupBookingTest, AnIdIsBookedOnce) {
  service.restock("pen", 10);
  service.restock("ink", 10);
  Group().add("old").book(database);
  Group().add("of ink", 1, "ink").book(database);
  EXPECT_THAT(
      Group().add("a").add("old").add("a").add("of ink", 5).add("b").add("a", 2).book(database).answers(),
      ElementsAre("deducted", "duplicate", "duplicate", "duplicate", "deducted", "duplicate"));
  EXPECT_EQ(shop.level("pen"), 10 - 3);
  EXPECT_EQ(shop.sold("pen"), 3);
  EXPECT_THAT(Group().add("a").add("old").book(database).answers(), ElementsAre("duplicate", "duplicate"));
  EXPECT_THAT(Group().add("c").add("c").book(database).answers(), ElementsAre("deducted", "duplicate"));
}

TEST_P(GroupBookingTest, AnIdThatWasRefusedMayComeAgainInTheSameGroup) {
  service.restock("pen", 5);
  EXPECT_THAT(Group().add("a", 6).add("a", 5).add("a", 5).book(database).answers(),
              ElementsAre("sold out", "deducted", "duplicate"));
  EXPECT_EQ(shop.level("pen"), 0);
}

TEST_P(GroupBookingTest, TellsAnUnknownArticleAndADuplicateApart) {
  service.restock("ink", 1);
  Group().add("old", 1, "ink").book(database);
  EXPECT_THAT(Group().add("a").add("old").book(database).answers(), ElementsAre("unknown sku", "duplicate"));
  EXPECT_EQ(shop.orders("pen"), 0);
}

TEST_P(GroupBookingTest, HundredsOfOrdersAreOneTransaction) {
  service.restock("pen", 511);
  Group group;
  for (int order = 0; order < 512; ++order) group.add(std::string(50, '\xff') + std::to_string(order));
  EXPECT_THAT(group.book(database).answers(), ::testing::Contains("sold out").Times(1));
  EXPECT_EQ(group.answers().back(), "sold out");
  EXPECT_EQ(shop.level("pen"), 0);
  EXPECT_EQ(shop.orders("pen"), 511);
}

INSTANTIATE_TEST_SUITE_P(All, GroupBookingTest, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

/// Two can be booked, two never.
Group mixedGroup(const std::string& name) {
  return Group().add(name + "a").add("old").add(name + "big", 1'000'000).add(name + "b", 2);
}

Group plainGroup(const std::string& name) { return Group().add(name + "a").add(name + "b", 2); }

using GroupBookingOnServers = GroupBookingTest;

// What is told of an order that is booked must not be lost with the server: what it has shown before it
// flushed it is flushed with this.
TEST_P(GroupBookingOnServers, WhoIsBookedHasSomethingToCommitThatChangesNothing) {
  service.restock("pen", 10);
  Group().add("a").book(database);
  const auto rows = [&] {
    Transaction transaction = database.begin(inventory::Access::read);
    return std::pair(transaction.select("SELECT level, version FROM lockkeeper_stock", {}),
                     transaction.select("SELECT attempt, quantity FROM lockkeeper_orders", {}));
  };
  const auto before = rows();
  using Write = std::function<void(StockTables&)>;
  for (const Write& write : {Write([](StockTables& tables) { tables.rewriteOrder("a"); }),
                             Write([](StockTables& tables) { EXPECT_TRUE(tables.touch("pen")); }),
                             Write([](StockTables& tables) { tables.hold({"pen"}); })}) {
    Transaction transaction = database.begin();
    StockTables tables(transaction, database.dialect());
    write(tables);
    const auto written = transaction.select(
        GetParam() == Backend::postgres
            ? "SELECT CASE WHEN pg_current_xact_id_if_assigned() IS NULL THEN 0 ELSE 1 END"
            : "SELECT CAST(trx_rows_modified AS SIGNED) FROM information_schema.innodb_trx "
              "WHERE trx_mysql_thread_id = CONNECTION_ID()",
        {});
    ASSERT_TRUE(written);
    EXPECT_GT(std::get<std::int64_t>(written->front()), 0);
    transaction.commit();
    EXPECT_EQ(rows(), before);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GroupBookingOnServers, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });

class GroupBookingFaults : public GroupFaults {
 protected:
  GroupBookingFaults() {
    service.restock("pen", 1'000'000);
    Group().add("old").book(near);
  }

  void expectTruth(Group (&make)(const std::string&), std::size_t step) {
    endInTheTruth(
        [&](const std::string& name, Database& database) { return make(name).book(database).answers(); },
        step, [&](const std::string& name) { return shop.booked(name + "a") && shop.booked(name + "b"); });
    EXPECT_EQ(shop.level("pen") + shop.sold("pen"), 1'000'000);
  }
};

TEST_P(GroupBookingFaults, EveryCutReplyEndsInTheTruth) { expectTruth(plainGroup, 1); }

TEST_P(GroupBookingFaults, CutRepliesToAGroupThatIsDecidedOneByOneEndInTheTruth) {
  expectTruth(mixedGroup, 7);
}

TEST_P(GroupBookingFaults, AGroupIsTwoRoundTrips) {
  plainGroup("connect").book(distant);
  proxy.passThrough();
  EXPECT_THAT(plainGroup("measure").book(distant).answers(), ElementsAre("deducted", "deducted"));
  // The first request is not after a reply of this transaction.
  EXPECT_EQ(proxy.requests(), 2U);
}

using GroupBookingOfTwoBrands = GroupBookingFaults;

TEST_P(GroupBookingOfTwoBrands, AGroupOf32IsSixStatements) {
  Group group;
  for (int order = 0; order < 32; ++order) group.add(std::to_string(order));
  plainGroup("connect").book(near);
  const auto statements = [&] {
    std::string name, count;
    watching << "SHOW GLOBAL STATUS LIKE 'Questions'", into(name), into(count), now;
    return std::stoi(count);
  };
  const int before = statements();
  group.book(near);
  // And the question for the number itself.
  EXPECT_EQ(statements() - before, 6 + 1);
}

TEST_P(GroupBookingFaults, AConnectionThatIsLostBeforeCommitBooksNothing) {
  plainGroup("connect").book(distant);
  proxy.leadTo(freePort());
  proxy.cutReplies(0, Ending::rst);
  EXPECT_THAT(plainGroup("order").book(distant).answers(), ElementsAre("unavailable", "unavailable"));
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_FALSE(shop.booked("ordera") || shop.booked("orderb"));
}

TEST_P(GroupBookingFaults, ACommitThatDoesNotArriveIsDoneAgain) {
  plainGroup("connect").book(distant);
  proxy.set({.kind = ProxyFault::Kind::hold, .text = commitTo(GetParam())});
  EXPECT_THAT(plainGroup("order").book(distant).answers(), ElementsAre("deducted", "deducted"));
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_TRUE(shop.booked("ordera") && shop.booked("orderb"));
  EXPECT_EQ(shop.level("pen") + shop.sold("pen"), 1'000'000);
}

TEST_P(GroupBookingFaults, OnlyThoseThatMayBeBookedAreInDoubt) {
  mixedGroup("connect").book(distant);
  proxy.passThrough();
  mixedGroup("measure").book(distant);
  const std::size_t allButTheEnd = proxy.replyBytes() - 1;
  proxy.leadTo(freePort());
  proxy.cutReplies(allButTheEnd, Ending::rst);
  // "old" is no new order, but who asks again had better be told the same by all.
  EXPECT_THAT(mixedGroup("order").book(distant).answers(),
              ElementsAre("unknown", "unknown", "unavailable", "unknown"));
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_TRUE(shop.booked("ordera") && shop.booked("orderb")) << "the server had committed";
  EXPECT_FALSE(shop.booked("orderbig"));
}

INSTANTIATE_TEST_SUITE_P(All, GroupBookingFaults, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });
INSTANTIATE_TEST_SUITE_P(All, GroupBookingOfTwoBrands, ::testing::ValuesIn(mysqlServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
