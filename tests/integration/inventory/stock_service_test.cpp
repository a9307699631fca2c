// What a StockService answers, on each database and in each way.

#include <gmock/gmock.h>

#include <stdexcept>
#include <tuple>

#include "shop.h"

namespace lockkeeper::test {
namespace {

using inventory::Deduction;
using inventory::StockService;
using inventory::Way;

class StockServiceTest : public ::testing::TestWithParam<std::tuple<Backend, Way>> {
 protected:
  Shop shop{std::get<Backend>(GetParam())};
  StockService service = shop.service(std::get<Way>(GetParam()));
};

TEST_P(StockServiceTest, BooksAnOrderAndLowersTheStock) {
  service.restock("pen", 10);
  EXPECT_EQ(service.deduct("pen", 3, "order-1"), Deduction::deducted);
  EXPECT_EQ(service.level("pen"), 7);
  EXPECT_EQ(shop.level("pen"), 7);
  EXPECT_EQ(shop.sold("pen"), 3);
}

TEST_P(StockServiceTest, ChangesNothingWhenSoldOut) {
  service.restock("pen", 2);
  EXPECT_EQ(service.deduct("pen", 3, "order-1"), Deduction::soldOut);
  EXPECT_EQ(shop.level("pen"), 2);
  EXPECT_EQ(shop.orders("pen"), 0);
  EXPECT_EQ(service.deduct("pen", 2, "order-1"), Deduction::deducted)
      << "an order that was not booked may come again";
  EXPECT_EQ(service.deduct("pen", 1, "order-2"), Deduction::soldOut);
}

TEST_P(StockServiceTest, TellsAnUnknownArticleFromASoldOutOne) {
  service.restock("empty", 0);
  EXPECT_EQ(service.deduct("empty", 1, "order-1"), Deduction::soldOut);
  EXPECT_EQ(service.deduct("nothing", 1, "order-1"), Deduction::unknownSku);
  EXPECT_EQ(service.level("empty"), 0);
  EXPECT_EQ(service.level("nothing"), std::nullopt);
  EXPECT_EQ(shop.orders("nothing"), 0);
}

TEST_P(StockServiceTest, BooksAnOrderIdOnceWhateverItOrders) {
  service.restock("pen", 5);
  service.restock("ink", 5);
  EXPECT_EQ(service.deduct("pen", 5, "order-1"), Deduction::deducted);
  EXPECT_EQ(service.deduct("pen", 5, "order-1"), Deduction::duplicate) << "not sold out: it has been booked";
  EXPECT_EQ(service.deduct("pen", 1, "order-1"), Deduction::duplicate);
  EXPECT_EQ(service.deduct("ink", 1, "order-1"), Deduction::duplicate);
  EXPECT_EQ(shop.level("pen"), 0);
  EXPECT_EQ(shop.level("ink"), 5);
}

TEST_P(StockServiceTest, RestockAddsToWhatIsThere) {
  service.restock("pen", 1);
  service.restock("pen", 0);
  service.restock("pen", 1'000'000);
  EXPECT_EQ(shop.level("pen"), 1'000'001);
}

TEST_P(StockServiceTest, KeepsNamesApartByteByByte) {
  const std::string names[] = {"a", "A", "a ", std::string("a\0b", 3), "\xff\xfe", "ä", "a'; --", "%41"};
  std::int64_t quantity = 0;
  for (const auto& name : names) service.restock(name, ++quantity);
  quantity = 0;
  for (const auto& name : names) {
    EXPECT_EQ(service.level(name), ++quantity) << ::testing::PrintToString(name);
    EXPECT_EQ(service.deduct(name, quantity, name), Deduction::deducted) << ::testing::PrintToString(name);
    EXPECT_EQ(service.deduct(name, quantity, name), Deduction::duplicate) << ::testing::PrintToString(name);
  }
}

// MySQL's message quotes the order id in front of the error's number.
TEST_P(StockServiceTest, AnOrderIdCannotPassForAnErrorOfTheDatabase) {
  service.restock("pen", 5);
  for (const std::string id :
       {"[mysql_stmt_errno]: 1205", "x\t[mysql_stmt_errno]: 2013\t", "UNIQUE constraint"}) {
    EXPECT_EQ(service.deduct("pen", 1, id), Deduction::deducted);
    EXPECT_EQ(service.deduct("pen", 1, id), Deduction::duplicate);
  }
}

TEST_P(StockServiceTest, RefusesBadInputByName) {
  const std::string tooLong(65, 'x');
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { (void)service.deduct("", 1, "o"); }),
            "sku is '' (0 bytes): 1 to 64 bytes are allowed");
  EXPECT_THAT(message([&] { (void)service.deduct(tooLong, 1, "o"); }), ::testing::HasSubstr("sku is 'xxx"));
  EXPECT_THAT(message([&] { (void)service.deduct("lockkeeper:pen", 1, "o"); }),
              ::testing::HasSubstr(":lockkeeper:"));
  EXPECT_THAT(message([&] { (void)service.deduct("pen", 1, ""); }), ::testing::HasSubstr("orderId is ''"));
  EXPECT_THAT(message([&] { (void)service.deduct("pen", 1, tooLong); }),
              ::testing::HasSubstr("orderId is 'xxx"));
  EXPECT_EQ(message([&] { (void)service.deduct("pen", 0, "o"); }), "quantity is 0: 1 to 1000000 are allowed");
  EXPECT_EQ(message([&] { (void)service.deduct("pen", -1, "o"); }),
            "quantity is -1: 1 to 1000000 are allowed");
  EXPECT_EQ(message([&] { (void)service.deduct("pen", 1'000'001, "o"); }),
            "quantity is 1000001: 1 to 1000000 are allowed");
  EXPECT_EQ(message([&] { service.restock("pen", -1); }), "quantity is -1: 0 to 1000000 are allowed");
  EXPECT_EQ(message([&] { (void)service.level(""); }), "sku is '' (0 bytes): 1 to 64 bytes are allowed");
  EXPECT_EQ(service.level("pen"), std::nullopt);
}

TEST_P(StockServiceTest, MakesTheTablesOnce) {
  service.restock("pen", 1);
  service.createSchema();
  EXPECT_EQ(service.level("pen"), 1);
}

INSTANTIATE_TEST_SUITE_P(All, StockServiceTest,
                         ::testing::Combine(::testing::ValuesIn(allBackends), ::testing::ValuesIn(allWays)),
                         [](const auto& each) {
                           return nameOf(std::get<Backend>(each.param)) + nameOf(std::get<Way>(each.param));
                         });

}  // namespace
}  // namespace lockkeeper::test
