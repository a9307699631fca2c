// Carts that are reserved as one transaction: each gets the answer that it would have got alone, whatever
// becomes of the connection.

#include "ledger/group_reserving.h"

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <algorithm>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "free_port.h"
#include "group_faults.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::CartRule;
using inventory::Database;
using inventory::Deduction;
using inventory::GroupReserving;
using inventory::KnownSplits;
using inventory::PlacedReservation;
using inventory::Reservation;
using inventory::ReservationState;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string answerOf(const Reservation& reservation) {
  std::string text = toString(reservation.state);
  if (reservation.state == ReservationState::soldOut) return text;
  for (const auto& each : reservation.lines) text += " " + std::to_string(each.quantity);
  return text;
}

/// Carts of one article in the order in which they came.
class Carts {
 public:
  Carts& add(const std::string& id, std::int64_t quantity = 1, CartRule rule = CartRule::all,
             const std::string& sku = "pen") {
    carts_.push_back({.cart = {{sku, quantity}}, .ttl = 10min, .id = id, .rule = rule});
    return *this;
  }

  Carts& reserve(Database& database) {
    KnownSplits none(systemRandom());
    return reserve(database, none);
  }

  Carts& reserve(Database& database, KnownSplits& splits) {
    std::vector<PlacedReservation*> carts;
    for (PlacedReservation& each : carts_) carts.push_back(&each);
    GroupReserving(database, splits, "who", carts, Instant::max()).run();
    return *this;
  }

  /// "held 2", "sold out", "expired" and so on, or the name of the error.
  Answers answers() const {
    Answers answers;
    for (const PlacedReservation& each : carts_) {
      answers.push_back(each.failure  ? nameOf(each.failure)
                        : each.result ? answerOf(*each.result)
                                      : "expired");
    }
    return answers;
  }

 private:
  std::deque<PlacedReservation> carts_;
};

class GroupReservingTest : public ::testing::TestWithParam<Backend> {
 protected:
  void expectLevel(std::int64_t level) {
    EXPECT_EQ(shop.level("pen"), level);
    EXPECT_THAT(service.checkLedger(), IsEmpty());
  }

  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, impatient);
  Database database{shop.uri(), impatient};
};

TEST_P(GroupReservingTest, HoldsForAllWhenThereIsEnoughAndTellsTheLevelThatEachLeft) {
  service.restock("pen", 10, "r");
  EXPECT_THAT(Carts().add("a").add("b", 2).add("c", 7).reserve(database).answers(),
              ElementsAre("held 1", "held 2", "held 7"));
  expectLevel(0);
  std::vector<std::string> entries;
  for (const auto& each : service.ledger("pen")) {
    if (each.reason == "reserve") {
      entries.push_back(each.id + " " + std::to_string(each.levelAfter.value()) + " " + each.who);
    }
  }
  EXPECT_THAT(entries, ::testing::UnorderedElementsAre("a 9 who", "b 7 who", "c 0 who"));
}

TEST_P(GroupReservingTest, StockForSomeGoesToThoseWhoCameFirst) {
  service.restock("pen", 6);
  EXPECT_THAT(Carts()
                  .add("a", 3)
                  .add("b", 4)
                  .add("c", 2)
                  .add("d", 4, CartRule::part)
                  .add("e", 1, CartRule::part)
                  .reserve(database)
                  .answers(),
              ElementsAre("held 3", "sold out", "held 2", "held 1", "sold out"));
  expectLevel(0);
  EXPECT_EQ(service.confirm("b"), ReservationState::unknownId);
  EXPECT_EQ(service.confirm("d"), ReservationState::confirmed);
}

TEST_P(GroupReservingTest, AnIdHoldsOnceAlsoWithinTheGroup) {
  service.restock("pen", 10);
  service.restock("ink", 10);
  Carts().add("old", 2).add("sold", 1).add("back", 1).reserve(database);
  ASSERT_EQ(service.confirm("sold"), ReservationState::confirmed);
  ASSERT_EQ(service.cancel("back"), ReservationState::cancelled);
  ASSERT_EQ(service.reserve({{"ink", 4}}, 10min, "of ink").state, ReservationState::held);
  EXPECT_THAT(Carts().add("a").add("a", 5).reserve(database).answers(), ElementsAre("held 1", "differs 1"));
  EXPECT_THAT(
      Carts()
          .add("b", 2)
          .add("old")
          .add("b")
          .add("sold", 9)
          .add("back")
          .add("of ink")
          .add("a")
          .reserve(database)
          .answers(),
      ElementsAre("held 2", "differs 2", "differs 2", "confirmed 1", "cancelled 1", "differs 4", "held 1"));
  expectLevel(10 - 2 - 1 - 1 - 2);
}

TEST_P(GroupReservingTest, AnIdThatWasRefusedMayComeAgainInTheSameGroup) {
  service.restock("pen", 5);
  EXPECT_THAT(Carts().add("a", 6).add("a", 5).add("a", 6).reserve(database).answers(),
              ElementsAre("sold out", "held 5", "differs 5"));
  expectLevel(0);
}

TEST_P(GroupReservingTest, TellsAnUnknownArticleFromAKnownId) {
  service.restock("ink", 1);
  ASSERT_EQ(service.reserve({{"ink", 1}}, 10min, "old").state, ReservationState::held);
  EXPECT_THAT(Carts().add("a").add("old").reserve(database).answers(),
              ElementsAre("unknown sku 0", "differs 1"));
}

TEST_P(GroupReservingTest, WhatHasExpiredIsTakenByThoseWhoNeedIt) {
  service.restock("pen", 5);
  ASSERT_EQ(service.reserve({{"pen", 2}}, 1ms, "e1").state, ReservationState::held);
  ASSERT_EQ(service.reserve({{"pen", 2}}, 1ms, "e2").state, ReservationState::held);
  std::this_thread::sleep_for(20ms);  // by the clock of the server
  EXPECT_THAT(Carts().add("a", 3).add("e1").add("b", 2).add("c").reserve(database).answers(),
              ElementsAre("held 3", "expired", "held 2", "sold out"));
  expectLevel(0);
  EXPECT_EQ(service.sweepExpired(), 0U) << "they are back already";
}

// An operator has deleted a reservation and left its rows in the ledger, as he should.
TEST_P(GroupReservingTest, AnIdWhoseReservationWasDeletedFailsItsOwnCallersAlone) {
  service.restock("pen", 20);
  service.restock("ink", 10);
  Carts().add("gone", 2).add("gone too", 3).reserve(database);
  ASSERT_EQ(service.confirm("gone"), ReservationState::confirmed);
  ASSERT_EQ(service.confirm("gone too"), ReservationState::confirmed);
  Carts().add("kept", 2).reserve(database);
  // As docs/inventory.md says.
  shop.session() << "DELETE FROM lockkeeper_reservations WHERE state IN ('confirmed', 'cancelled', "
                    "'expired') AND expires_at < 9000000000000",
      now;
  const std::string why = database.display() + ": the ledger has a reservation 'gone' of which the rows in " +
                          "lockkeeper_reservations were deleted: its id cannot be used again";
  EXPECT_THAT(Carts().add("a").add("gone").add("b", 2).add("gone", 9).add("c").reserve(database).answers(),
              ElementsAre("held 1", why, "held 2", why, "held 1"));
  EXPECT_THAT(Carts().add("gone").reserve(database).answers(), ElementsAre(why));
  EXPECT_THROW((void)service.reserve({{"ink", 1}, {"pen", 1}}, 10min, "gone too"), ConfigError);
  EXPECT_EQ(service.confirm("gone"), ReservationState::unknownId);
  EXPECT_EQ(service.takeBack("gone", "pen", 1, "back"), inventory::Return::unknownOrder);
  EXPECT_EQ(service.confirm("kept"), ReservationState::confirmed);
  EXPECT_EQ(shop.level("ink"), 10);
  expectLevel(20 - 2 - 3 - 2 - 4);
}

// As a later version of the library might have written it.
TEST_P(GroupReservingTest, AReservationWithAnUnknownStateFailsItsOwnCallersAlone) {
  service.restock("pen", 20);
  Carts().add("new", 2).reserve(database);
  shop.session() << "UPDATE lockkeeper_reservations SET state = 'packed' WHERE reservation_id = 'new'", now;
  const std::string why =
      "the reservation 'new' has the state 'packed' in lockkeeper_reservations: it must be held, confirmed, "
      "cancelled or expired";
  EXPECT_THAT(Carts().add("a").add("new").add("b", 2).add("new", 9).reserve(database).answers(),
              ElementsAre("held 1", why, "held 2", why));
  expectLevel(20 - 2 - 3);
}

TEST_P(GroupReservingTest, HundredsOfCartsAreOneTransaction) {
  service.restock("pen", 511);
  Carts carts;
  for (int cart = 0; cart < 512; ++cart) carts.add(std::string(50, '\xff') + std::to_string(cart));
  EXPECT_THAT(carts.reserve(database).answers(), ::testing::Contains("sold out").Times(1));
  EXPECT_EQ(carts.answers().back(), "sold out");
  EXPECT_THAT(carts.reserve(database).answers(), ::testing::Contains("held 1").Times(511)) << "again";
  expectLevel(0);
}

// Through the service, with orders in between.
TEST_P(GroupReservingTest, ManyCallersNeitherLoseNorDouble) {
  constexpr int callers = 16;
  constexpr int cartsOfCaller = 20;
  constexpr std::int64_t stock = 150;
  StockService together = shop.service(Way::conditionalUpdate, {.operationTimeout = 20s});
  together.restock("pen", stock);
  std::atomic<std::int64_t> held = 0, ordered = 0;
  {
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < callers; ++caller) {
      threads.emplace_back([&, caller] {
        for (int number = 0; number < cartsOfCaller; ++number) {
          // Each id comes from two callers.
          const std::string id = std::to_string(caller / 2) + "-" + std::to_string(number);
          const Reservation cart = together.reserve({{"pen", 1}}, 10min, id);
          if (cart.state == ReservationState::held && caller % 2 == 0) ++held;
          if (number % 5 == 0) {
            ordered += together.deduct("pen", 1, id + std::to_string(caller)) == Deduction::deducted ? 1 : 0;
          }
        }
      });
    }
  }
  EXPECT_LE(held, shop.reserved("pen"));
  EXPECT_EQ(ordered, shop.sold("pen"));
  EXPECT_EQ(shop.level("pen") + shop.reserved("pen") + shop.sold("pen"), stock);
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, GroupReservingTest, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

/// Two can be held, one is already, one never.
Carts mixedCarts(const std::string& name) {
  return Carts().add(name + "a").add("old").add(name + "big", 1'000'000).add(name + "b", 2);
}

Carts plainCarts(const std::string& name) { return Carts().add(name + "a").add(name + "b", 2); }

class GroupReservingFaults : public GroupFaults {
 protected:
  GroupReservingFaults() {
    service.restock("pen", 1'000'000);
    Carts().add("old").reserve(near);
  }

  bool isThere(const std::string& id) { return service.extend(id, 1ms) == ReservationState::held; }

  void expectTruth(Carts (&make)(const std::string&), std::size_t step) {
    endInTheTruth(
        [&](const std::string& name, Database& database) { return make(name).reserve(database).answers(); },
        step, [&](const std::string& name) { return isThere(name + "a") && isThere(name + "b"); });
    expectBalance();
  }

  void expectBalance() {
    EXPECT_EQ(shop.level("pen") + shop.reserved("pen"), 1'000'000);
    EXPECT_THAT(service.checkLedger(), IsEmpty());
  }
};

TEST_P(GroupReservingFaults, EveryCutReplyEndsInTheTruth) { expectTruth(plainCarts, 3); }

TEST_P(GroupReservingFaults, CutRepliesToAGroupThatIsDecidedOneByOneEndInTheTruth) {
  expectTruth(mixedCarts, 17);
}

TEST_P(GroupReservingFaults, CutRepliesWhileMuchThatHasExpiredGoesBackEndInTheTruth) {
  constexpr std::int64_t needed = 450;
  service.restock("ink", 0);
  std::int64_t expired = 0;
  endInTheTruth(
      [&](const std::string& name, Database& database) {
        shop.addExpired("ink", needed, name);
        expired += needed;
        return Carts().add(name + "a", needed, CartRule::all, "ink").reserve(database).answers();
      },
      5'003, [&](const std::string& name) { return isThere(name + "a"); });
  EXPECT_EQ(shop.level("ink"), 0);
  EXPECT_EQ(shop.reserved("ink"), expired);
  expectBalance();
}

TEST_P(GroupReservingFaults, AGroupIsTwoRoundTrips) {
  plainCarts("connect").reserve(distant);
  proxy.passThrough();
  EXPECT_THAT(plainCarts("measure").reserve(distant).answers(), ElementsAre("held 1", "held 2"));
  EXPECT_EQ(proxy.requests(), 2U);
}

using GroupReservingOfTwoBrands = GroupReservingFaults;

TEST_P(GroupReservingOfTwoBrands, AGroupIsSevenStatements) {
  plainCarts("connect").reserve(distant);
  Carts carts;
  for (int cart = 0; cart < 32; ++cart) carts.add(std::to_string(cart));
  const auto statements = [&] {
    std::string name, count;
    watching << "SHOW GLOBAL STATUS LIKE 'Questions'", into(name), into(count), now;
    return std::stoi(count);
  };
  const int before = statements();
  EXPECT_THAT(carts.reserve(distant).answers(), Each("held 1"));
  // And the question for the number itself.
  EXPECT_EQ(statements() - before, 7 + 1);
}

TEST_P(GroupReservingFaults, AConnectionThatIsLostBeforeCommitReservesNothing) {
  plainCarts("connect").reserve(distant);
  proxy.leadTo(freePort());
  proxy.cutReplies(0, Ending::rst);
  EXPECT_THAT(plainCarts("cart").reserve(distant).answers(), ElementsAre("unavailable", "unavailable"));
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_EQ(service.cancel("carta"), ReservationState::unknownId);
  expectBalance();
}

TEST_P(GroupReservingFaults, ACommitThatDoesNotArriveIsDoneAgain) {
  plainCarts("connect").reserve(distant);
  proxy.set({.kind = ProxyFault::Kind::hold, .text = commitTo(GetParam())});
  EXPECT_THAT(plainCarts("cart").reserve(distant).answers(), ElementsAre("held 1", "held 2"));
  EXPECT_EQ(proxy.fired(), 1U);
  expectBalance();
}

TEST_P(GroupReservingFaults, OnlyThoseThatMayBeReservedAreInDoubt) {
  mixedCarts("connect").reserve(distant);
  proxy.passThrough();
  mixedCarts("measure").reserve(distant);
  const std::size_t allButTheEnd = proxy.replyBytes() - 1;
  proxy.leadTo(freePort());
  proxy.cutReplies(allButTheEnd, Ending::rst);
  EXPECT_THAT(mixedCarts("cart").reserve(distant).answers(),
              ElementsAre("unknown", "unknown", "unavailable", "unknown"));
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_TRUE(isThere("carta") && isThere("cartb")) << "the server had committed";
  EXPECT_EQ(service.cancel("cartbig"), ReservationState::unknownId);
  expectBalance();
}

// Or a service would still say that they are sold out.
TEST_P(GroupReservingFaults, AReplacementThatIsFoundDoneNamesTheArticlesThatItHasGivenBack) {
  service.restock("ink", 10);
  const auto replaced = [&](const std::string& id) {
    EXPECT_EQ(service.reserve({{"pen", 1}}, 10min, id).state, ReservationState::held);
    std::vector<std::string> formerSkus;
    PlacedReservation cart{.cart = {{"ink", 1}}, .ttl = 10min, .id = id, .formerSkus = &formerSkus};
    PlacedReservation* const only = &cart;
    KnownSplits none(systemRandom());
    GroupReserving(distant, none, "who", {&only, 1}, Instant::max()).run();
    cart.formerSkus = nullptr;
    return std::pair(std::move(cart), std::move(formerSkus));
  };
  (void)replaced("a");
  proxy.passThrough();
  (void)replaced("b");
  proxy.cutReplies(proxy.replyBytes() - 1, Ending::rst);  // to COMMIT
  const auto [cart, formerSkus] = replaced("c");
  EXPECT_EQ(proxy.fired(), 1U);
  ASSERT_TRUE(cart.result);
  EXPECT_EQ(answerOf(*cart.result), "held 1");
  EXPECT_THAT(formerSkus, ::testing::Contains("pen"));
}

INSTANTIATE_TEST_SUITE_P(All, GroupReservingFaults, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });
INSTANTIATE_TEST_SUITE_P(All, GroupReservingOfTwoBrands, ::testing::ValuesIn(mysqlServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
