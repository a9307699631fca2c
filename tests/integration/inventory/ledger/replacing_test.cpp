// A cart that is held may become another one: at once, and without anybody getting its goods in between.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "shop.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::CartLine;
using inventory::CartRule;
using inventory::Deduction;
using inventory::Reservation;
using inventory::ReservationState;
using inventory::Return;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::now;

/// "held ink 2 pen 1".
std::string wordsOf(const Reservation& reservation) {
  std::string text = toString(reservation.state);
  for (const CartLine& each : reservation.lines) text += " " + each.sku + " " + std::to_string(each.quantity);
  return text;
}

class Replacing : public ::testing::TestWithParam<Backend> {
 protected:
  Replacing() {
    service.restock("pen", 5, "pen");
    service.restock("ink", 3, "ink");
  }

  std::string reserve(const std::vector<CartLine>& cart, CartRule rule = CartRule::all) {
    return wordsOf(service.reserve(cart, 1h, "cart", rule));
  }
  std::string replace(const std::vector<CartLine>& cart, CartRule rule = CartRule::all) {
    return wordsOf(service.replace(cart, 1h, "cart", rule));
  }

  void expectLevels(std::int64_t pens, std::int64_t ink) {
    EXPECT_EQ(shop.level("pen"), pens);
    EXPECT_EQ(shop.level("ink"), ink);
    for (const char* sku : {"pen", "ink"}) EXPECT_EQ(shop.ledger(sku), shop.level(sku)) << sku;
    EXPECT_THAT(service.checkLedger(), ::testing::IsEmpty());
  }

  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, {.rememberSoldOut = 1min});
};

TEST_P(Replacing, AChangedCartUnderAKnownIdDiffers) {
  EXPECT_EQ(reserve({{"pen", 2}}), "held pen 2");
  EXPECT_EQ(reserve({{"pen", 3}}), "differs pen 2");
  EXPECT_EQ(reserve({{"ink", 1}, {"pen", 2}}), "differs pen 2");
  EXPECT_EQ(reserve({{"pen", 2}}), "held pen 2");
  expectLevels(3, 3);
  EXPECT_EQ(service.confirm("cart"), ReservationState::confirmed);
  EXPECT_EQ(reserve({{"pen", 3}}), "confirmed pen 2");
  EXPECT_EQ(replace({{"pen", 3}}), "confirmed pen 2");
}

TEST_P(Replacing, CountsWhatTheCartHoldsAlready) {
  EXPECT_EQ(reserve({{"pen", 3}}), "held pen 3");
  EXPECT_EQ(service.deduct("pen", 2, "the others"), Deduction::deducted);
  EXPECT_EQ(replace({{"pen", 4}}), "sold out pen 3");
  EXPECT_EQ(reserve({{"pen", 3}}), "held pen 3") << "it stays as it was";
  EXPECT_EQ(replace({{"pen", 3}, {"ink", 4}}), "sold out ink 3");
  EXPECT_EQ(replace({{"cap", 1}}), "unknown sku cap 0");
  EXPECT_EQ(replace({{"pen", 3}, {"ink", 3}}), "held ink 3 pen 3");
  expectLevels(0, 0);
  EXPECT_EQ(replace({{"ink", 2}}), "held ink 2");
  expectLevels(3, 1);
  EXPECT_EQ(service.deduct("pen", 3, "who waits"), Deduction::deducted) << "for sale at once";
  EXPECT_EQ(replace({{"ink", 2}, {"pen", 1}}, CartRule::part), "held ink 2");
  EXPECT_EQ(service.confirm("cart"), ReservationState::confirmed);
  EXPECT_EQ(service.takeBack("cart", "pen", 1, "b1"), Return::unknownOrder);
  EXPECT_EQ(service.takeBack("cart", "ink", 3, "b1"), Return::tooMany);
  EXPECT_EQ(service.takeBack("cart", "ink", 2, "b1"), Return::returned);
  expectLevels(0, 3);
}

TEST_P(Replacing, TellsWhatTheReservationIs) {
  EXPECT_EQ(replace({{"pen", 1}}), "unknown id");
  EXPECT_EQ(reserve({{"pen", 1}}), "held pen 1");
  EXPECT_EQ(service.cancel("cart"), ReservationState::cancelled);
  EXPECT_EQ(replace({{"pen", 2}}), "cancelled pen 1");
  EXPECT_EQ(service.reserve({{"pen", 1}}, 1h, "late").state, ReservationState::held);
  shop.session() << "UPDATE lockkeeper_reservations SET expires_at = 1 WHERE state = 'held'", now;
  EXPECT_EQ(wordsOf(service.replace({{"ink", 1}}, 1h, "late")), "expired pen 1");
  expectLevels(5, 3);
}

// A line that holds nothing has no row in the ledger.
TEST_P(Replacing, LeavesOneReservationOfTheId) {
  EXPECT_EQ(service.deduct("ink", 3, "all ink"), Deduction::deducted);
  EXPECT_EQ(reserve({{"ink", 1}, {"pen", 1}}, CartRule::part), "held pen 1");
  for (std::int64_t pens : {2, 1, 2}) {
    EXPECT_EQ(replace({{"pen", pens}}), "held pen " + std::to_string(pens));
    EXPECT_EQ(reserve({{"pen", 5}}), "differs pen " + std::to_string(pens));
  }
  EXPECT_EQ(service.extend("cart", 2h), ReservationState::held);
  EXPECT_EQ(service.cancel("cart"), ReservationState::cancelled);
  expectLevels(5, 0);
}

TEST_P(Replacing, TakesFromAllBuckets) {
  EXPECT_TRUE(service.split("pen", 3));
  EXPECT_EQ(reserve({{"pen", 2}}), "held pen 2");
  EXPECT_EQ(replace({{"pen", 6}}), "sold out pen 5");
  EXPECT_EQ(replace({{"pen", 5}, {"ink", 1}}), "held ink 1 pen 5");
  expectLevels(0, 2);
  EXPECT_EQ(replace({{"pen", 1}}), "held pen 1");
  expectLevels(4, 3);
  EXPECT_TRUE(service.split("pen", 1));
  expectLevels(4, 3);
}

TEST_P(Replacing, PutsBackWhatHasExpiredForIt) {
  EXPECT_EQ(service.reserve({{"pen", 3}}, 1h, "late").state, ReservationState::held);
  shop.session() << "UPDATE lockkeeper_reservations SET expires_at = 1 WHERE state = 'held'", now;
  EXPECT_EQ(reserve({{"pen", 1}}), "held pen 1");
  EXPECT_EQ(replace({{"pen", 5}}), "held pen 5");
  EXPECT_EQ(service.confirm("late"), ReservationState::expired);
  expectLevels(0, 3);
}

// Two shoppers who swap articles, and one who confirms meanwhile.
TEST_P(Replacing, OfManyAtOnceNeitherLosesNorDoubles) {
  constexpr int rounds = 10;
  std::vector<std::future<void>> shoppers;
  for (int shopper = 0; shopper < 4; ++shopper) {
    shoppers.push_back(std::async(std::launch::async, [&, shopper] {
      StockService mine = shop.service(Way::conditionalUpdate, {.operationTimeout = 20s});
      const std::string id = std::to_string(shopper / 2);  // two of them share one
      (void)mine.reserve({{"pen", 1}}, 1h, id);
      for (int round = 0; round < rounds; ++round) {
        const std::string sku = (round + shopper) % 2 == 0 ? "pen" : "ink";
        const ReservationState state = mine.replace({{sku, 1 + round % 2}}, 1h, id).state;
        EXPECT_TRUE(state == ReservationState::held || state == ReservationState::soldOut);
        EXPECT_EQ(mine.extend(id, 1h), ReservationState::held);
      }
    }));
  }
  for (auto& each : shoppers) each.get();
  EXPECT_EQ(service.confirm("0"), ReservationState::confirmed);
  EXPECT_EQ(service.cancel("1"), ReservationState::cancelled);
  EXPECT_EQ(shop.level("pen") + shop.reserved("pen"), 5);
  EXPECT_EQ(shop.level("ink") + shop.reserved("ink"), 3);
  EXPECT_THAT(service.checkLedger(), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, Replacing, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
