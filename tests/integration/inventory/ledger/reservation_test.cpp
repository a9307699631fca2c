// Carts hold goods for a time: all or nothing, once for each id, and what has expired is for sale again.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "fault_proxy.h"
#include "lockkeeper/testing/fake_clock.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::CartLine;
using inventory::CartRule;
using inventory::Deduction;
using inventory::Reservation;
using inventory::ReservationState;
using inventory::Return;
using inventory::StockOptions;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::now;
using std::chrono::milliseconds;
using ::testing::IsEmpty;

/// "held ink 2 pen 1".
std::string textOf(const Reservation& reservation) {
  std::string text = toString(reservation.state);
  for (const CartLine& each : reservation.lines) text += " " + each.sku + " " + std::to_string(each.quantity);
  return text;
}

class ReservationsOfWays : public ::testing::TestWithParam<std::tuple<Backend, Way>> {
 protected:
  ReservationsOfWays() : ReservationsOfWays(std::get<0>(GetParam()), std::get<1>(GetParam())) {}
  ReservationsOfWays(Backend backend, Way way)
      : shop(backend),
        service(shop.service(way, {.rememberSoldOut = 1min, .environment = {.clock = clock}})) {
    service.restock("pen", 5, "pen");
    service.restock("ink", 3, "ink");
  }

  /// Servers have a clock of their own, which nobody moves: there, what is not called long was reserved
  /// earlier.
  void letExpire() {
    clock->advance(shortTtl);
    if (shop.backend() == Backend::sqlite) return;
    Poco::Data::Session session = shop.session();
    session << "UPDATE lockkeeper_reservations SET expires_at = expires_at - "
            << std::to_string(shortTtl.count())
            << " WHERE state = 'held' AND reservation_id NOT LIKE 'long%'",
        now;
  }

  void expectBalance() {
    for (const char* sku : {"pen", "ink"}) EXPECT_EQ(shop.ledger(sku), shop.level(sku)) << sku;
    EXPECT_THAT(service.checkLedger(), IsEmpty());
  }

  static constexpr milliseconds shortTtl = 10s;
  std::shared_ptr<lockkeeper::testing::FakeClock> clock = std::make_shared<lockkeeper::testing::FakeClock>();
  Shop shop;
  StockService service;
};

TEST_P(ReservationsOfWays, WhatHasExpiredIsSoldToWhoeverNeedsIt) {
  EXPECT_EQ(textOf(service.reserve({{"pen", 4}, {"ink", 1}}, shortTtl, "r")), "held ink 1 pen 4");
  EXPECT_EQ(service.deduct("pen", 1, "o1"), Deduction::deducted);
  letExpire();
  EXPECT_EQ(service.deduct("pen", 4, "o2"), Deduction::deducted);
  EXPECT_EQ(service.deduct("pen", 1, "o3"), Deduction::soldOut);
  EXPECT_EQ(service.confirm("r"), ReservationState::expired);
  EXPECT_EQ(shop.level("pen"), 0);
  EXPECT_EQ(shop.level("ink"), 3) << "the late confirmation has put back the rest of the cart";
  expectBalance();
}

INSTANTIATE_TEST_SUITE_P(All, ReservationsOfWays,
                         ::testing::Combine(::testing::ValuesIn(allBackends), ::testing::ValuesIn(allWays)),
                         [](const auto& each) {
                           return nameOf(std::get<Backend>(each.param)) + nameOf(std::get<Way>(each.param));
                         });

class Reservations : public ReservationsOfWays {};

TEST_P(Reservations, TakeAllOrNothing) {
  EXPECT_EQ(textOf(service.reserve({{"pen", 5}, {"ink", 4}}, 1min, "r")), "sold out ink 3");
  EXPECT_EQ(textOf(service.reserve({{"pen", 5}, {"cap", 1}}, 1min, "r")), "unknown sku cap 0");
  EXPECT_EQ(shop.level("pen"), 5);
  EXPECT_EQ(service.confirm("r"), ReservationState::unknownId);
  EXPECT_EQ(textOf(service.reserve({{"pen", 5}, {"ink", 3}}, 1min, "r")), "held ink 3 pen 5")
      << "what was refused may come again";
  EXPECT_EQ(textOf(service.reserve({{"pen", 1}, {"ink", 1}}, 1min, "q")), "sold out ink 0 pen 0");
  EXPECT_EQ(service.deduct("pen", 1, "o"), Deduction::soldOut);
  expectBalance();
}

TEST_P(Reservations, TakeWhatThereIsOnRequest) {
  EXPECT_EQ(textOf(service.reserve({{"pen", 2}, {"ink", 9}}, 1min, "r", CartRule::part)), "held ink 3 pen 2");
  EXPECT_EQ(textOf(service.reserve({{"pen", 2}, {"ink", 9}}, 1min, "q", CartRule::part)), "held pen 2");
  EXPECT_EQ(textOf(service.reserve({{"pen", 2}, {"ink", 9}}, 1min, "q")), "held pen 2");
  EXPECT_EQ(textOf(service.reserve({{"ink", 1}}, 1min, "p", CartRule::part)), "sold out ink 0");
  EXPECT_EQ(service.confirm("q"), ReservationState::confirmed);
  EXPECT_EQ(service.cancel("r"), ReservationState::cancelled);
  EXPECT_EQ(shop.level("pen"), 3);
  EXPECT_EQ(shop.level("ink"), 3);
  expectBalance();
}

TEST_P(Reservations, AnswerTheSameAgain) {
  const auto reserve = [&] { return textOf(service.reserve({{"pen", 2}}, 1min, "r")); };
  EXPECT_EQ(reserve(), "held pen 2");
  EXPECT_EQ(reserve(), "held pen 2");
  EXPECT_EQ(textOf(service.reserve({{"ink", 3}}, 1min, "r")), "differs pen 2");
  for (int times = 0; times < 2; ++times) EXPECT_EQ(service.confirm("r"), ReservationState::confirmed);
  EXPECT_EQ(reserve(), "confirmed pen 2");
  EXPECT_EQ(service.cancel("r"), ReservationState::confirmed) << "it is sold";
  EXPECT_EQ(service.extend("r", 1min), ReservationState::confirmed);
  EXPECT_EQ(textOf(service.reserve({{"ink", 3}}, 1min, "q")), "held ink 3");
  for (int times = 0; times < 2; ++times) EXPECT_EQ(service.cancel("q"), ReservationState::cancelled);
  EXPECT_EQ(service.confirm("q"), ReservationState::cancelled);
  EXPECT_EQ(textOf(service.reserve({{"ink", 3}}, 1min, "q")), "cancelled ink 3");
  EXPECT_EQ(service.cancel("none"), ReservationState::unknownId);
  EXPECT_EQ(service.extend("none", 1min), ReservationState::unknownId);
  EXPECT_EQ(shop.level("pen"), 3);
  EXPECT_EQ(shop.level("ink"), 3);
  expectBalance();
}

TEST_P(Reservations, AreInTheLedger) {
  ASSERT_EQ(textOf(service.reserve({{"pen", 2}}, 1min, "a")), "held pen 2");
  ASSERT_EQ(textOf(service.reserve({{"pen", 1}}, 1min, "b")), "held pen 1");
  ASSERT_EQ(textOf(service.reserve({{"pen", 1}}, shortTtl, "c")), "held pen 1");
  ASSERT_EQ(service.confirm("a"), ReservationState::confirmed);
  ASSERT_EQ(service.cancel("b"), ReservationState::cancelled);
  letExpire();
  ASSERT_EQ(service.sweepExpired(), 1U);
  std::vector<std::string> texts;
  for (const auto& each : service.ledger("pen")) {
    texts.push_back(each.reason + " " + each.id + " " + std::to_string(each.amount) + " = " +
                    std::to_string(each.levelAfter.value()));
  }
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre("restock pen 5 = 5", "reserve a -2 = 3",
                                                     "reserve b -1 = 2", "reserve c -1 = 1",
                                                     "confirm a 0 = 1", "cancel b 1 = 2", "expire c 1 = 3"));
  expectBalance();
}

TEST_P(Reservations, AreTakenBackAsOrdersAreOnceTheyAreConfirmed) {
  ASSERT_EQ(textOf(service.reserve({{"pen", 2}, {"ink", 1}}, 1min, "r")), "held ink 1 pen 2");
  EXPECT_EQ(service.takeBack("r", "pen", 1, "b1"), Return::unknownOrder) << "it is not sold";
  ASSERT_EQ(service.confirm("r"), ReservationState::confirmed);
  EXPECT_EQ(service.takeBack("r", "pen", 3, "b1"), Return::tooMany);
  EXPECT_EQ(service.takeBack("r", "pen", 2, "b1"), Return::returned);
  EXPECT_EQ(service.takeBack("r", "ink", 2, "b2"), Return::tooMany);
  EXPECT_EQ(service.takeBack("r", "ink", 1, "b2"), Return::returned);
  EXPECT_EQ(shop.level("pen"), 5);
  expectBalance();
}

TEST_P(Reservations, ExpireOnceWhoeverFindsThem) {
  ASSERT_EQ(textOf(service.reserve({{"pen", 5}, {"ink", 3}}, shortTtl, "r")), "held ink 3 pen 5");
  letExpire();
  EXPECT_EQ(textOf(service.reserve({{"pen", 5}}, 1min, "long")), "held pen 5");
  EXPECT_EQ(shop.level("ink"), 0) << "nobody needs it";
  EXPECT_EQ(service.confirm("r"), ReservationState::expired);
  EXPECT_EQ(service.confirm("r"), ReservationState::expired);
  EXPECT_EQ(service.cancel("r"), ReservationState::expired);
  EXPECT_EQ(service.extend("r", 1min), ReservationState::expired);
  EXPECT_EQ(textOf(service.reserve({{"ink", 1}}, 1min, "r")), "expired ink 3 pen 5");
  EXPECT_EQ(service.sweepExpired(), 0U);
  EXPECT_EQ(shop.level("pen"), 0);
  EXPECT_EQ(shop.level("ink"), 3);
  EXPECT_EQ(service.cancel("long"), ReservationState::cancelled);
  expectBalance();
}

TEST_P(Reservations, AreSweptWhenNobodyNeedsThem) {
  ASSERT_EQ(textOf(service.reserve({{"pen", 1}, {"ink", 1}}, shortTtl, "r")), "held ink 1 pen 1");
  ASSERT_EQ(textOf(service.reserve({{"pen", 1}}, shortTtl, "q")), "held pen 1");
  ASSERT_EQ(textOf(service.reserve({{"pen", 1}}, 10min, "long")), "held pen 1");
  EXPECT_EQ(service.sweepExpired(), 0U);
  letExpire();
  EXPECT_EQ(service.sweepExpired(), 3U);
  EXPECT_EQ(service.sweepExpired(), 0U);
  EXPECT_EQ(shop.level("pen"), 4);
  EXPECT_EQ(shop.level("ink"), 3);
  expectBalance();
}

TEST_P(Reservations, LiveLongerWhenTheyAreExtended) {
  ASSERT_EQ(textOf(service.reserve({{"pen", 5}}, shortTtl, "long")), "held pen 5");
  ASSERT_EQ(textOf(service.reserve({{"ink", 1}}, shortTtl, "short")), "held ink 1");
  EXPECT_EQ(service.extend("long", 10min), ReservationState::held);
  EXPECT_EQ(service.extend("long", 1ms), ReservationState::held) << "which makes it no shorter";
  letExpire();
  EXPECT_EQ(service.deduct("pen", 1, "o"), Deduction::soldOut);
  EXPECT_EQ(service.confirm("short"), ReservationState::expired);
  EXPECT_EQ(service.confirm("long"), ReservationState::confirmed);
}

// Else it would be refused for a minute.
TEST_P(Reservations, AreNoReasonToRememberSoldOutForLongerThanTheyLast) {
  ASSERT_EQ(textOf(service.reserve({{"pen", 5}}, shortTtl, "r")), "held pen 5");
  EXPECT_EQ(service.deduct("pen", 1, "o1"), Deduction::soldOut);
  letExpire();
  EXPECT_EQ(service.deduct("pen", 1, "o1"), Deduction::deducted);
  ASSERT_EQ(textOf(service.reserve({{"pen", 4}}, 1min, "long")), "held pen 4");
  EXPECT_EQ(service.deduct("pen", 1, "o2"), Deduction::soldOut);
  EXPECT_EQ(service.cancel("long"), ReservationState::cancelled);
  EXPECT_EQ(service.deduct("pen", 1, "o2"), Deduction::deducted) << "cancelled here: for sale at once";
}

TEST_P(Reservations, RefuseBadInputByName) {
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { (void)service.reserve({}, 1min, "r"); }),
            "the number of articles in the cart is 0: 1 to 100 are allowed");
  EXPECT_EQ(message([&] {
              (void)service.reserve({{"pen", 1}, {"ink", 1}, {"pen", 1}}, 1min, "r");
            }),
            "the cart names the sku 'pen' twice: once is allowed");
  EXPECT_EQ(message([&] {
              (void)service.reserve({{"pen", 0}}, 1min, "r");
            }),
            "quantity is 0: 1 to 1000000 are allowed");
  EXPECT_THAT(message([&] { (void)service.reserve({{"pen", 1}}, 0ms, "r"); }), ::testing::HasSubstr("ttl"));
  EXPECT_THAT(message([&] { (void)service.extend("r", 31 * 24h); }), ::testing::HasSubstr("ttl"));
  EXPECT_EQ(message([&] { (void)service.confirm(""); }),
            "reservationId is '' (0 bytes): 1 to 64 bytes are allowed");
  EXPECT_EQ(shop.level("pen"), 5);
}

TEST_P(Reservations, OfManyAtOnceNeitherLoseNorLockEachOtherOut) {
  constexpr int threads = 6;
  constexpr int cartsOfThread = 25;
  const std::vector<std::string> skus{"pen", "ink", "cap", "pad"};
  for (const std::string& sku : skus) service.restock(sku, 20, "more " + sku);
  const auto work = [&](unsigned seed) {
    StockService mine = shop.service(Way::conditionalUpdate, {.operationTimeout = 10s, .sessions = 2});
    std::mt19937 random(seed);
    for (int number = 0; number < cartsOfThread; ++number) {
      const std::string id = std::to_string(seed) + "-" + std::to_string(number);
      std::vector<std::string> some = skus;
      std::ranges::shuffle(some, random);
      std::vector<CartLine> cart;
      for (unsigned i = 0; i < 1 + seed % 3; ++i) cart.push_back({some[i], 1 + seed % 2});
      const auto state = mine.reserve(cart, random() % 4 == 0 ? 1ms : 10'000ms, id).state;
      if (state != ReservationState::held) continue;
      if (random() % 2 == 0) (void)mine.confirm(id);
      if (random() % 2 == 0) (void)mine.cancel(id);
      if (random() % 3 == 0) (void)mine.deduct(some[0], 1, id);
    }
  };
  {
    std::vector<std::jthread> running;
    for (unsigned seed = 1; seed <= threads; ++seed) {
      running.emplace_back([&, seed] { EXPECT_NO_THROW(work(seed)); });
    }
  }
  for (const std::string& sku : skus) {
    const std::int64_t stocked = sku == "pen" ? 25 : sku == "ink" ? 23 : 20;
    EXPECT_EQ(shop.level(sku) + shop.sold(sku) + shop.reserved(sku), stocked) << sku;
    EXPECT_EQ(shop.ledger(sku), shop.level(sku)) << sku;
  }
}

TEST_P(Reservations, AreConfirmedOrExpireAndNeverBoth) {
  constexpr int rounds = 40;
  service.restock("cap", 1, "cap");
  StockService other =
      shop.service(Way::conditionalUpdate, {.operationTimeout = 10s, .rememberSoldOut = 0ms});
  StockService mine = shop.service(Way::conditionalUpdate, {.operationTimeout = 10s});
  int confirmed = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string id = std::to_string(round);
    ASSERT_EQ(mine.reserve({{"cap", 1}, {"pen", 1}}, milliseconds(1 + round % 8), id).state,
              ReservationState::held);
    bool bought = false;
    std::atomic<bool> confirming = true;
    ReservationState state = ReservationState::held;
    {
      std::jthread buyer([&] {
        EXPECT_TRUE(waitUntil([&] {
          bought = other.deduct("cap", 1, id) == Deduction::deducted;
          return bought || !confirming;
        }));
      });
      std::this_thread::sleep_for(milliseconds(round % 5));
      state = mine.confirm(id);
      confirming = false;
    }
    EXPECT_TRUE(state == ReservationState::confirmed || state == ReservationState::expired)
        << toString(state);
    EXPECT_FALSE(bought && state == ReservationState::confirmed) << "sold twice in round " << round;
    confirmed += state == ReservationState::confirmed ? 1 : 0;
    if (state == ReservationState::confirmed) {
      ASSERT_EQ(mine.takeBack(id, "cap", 1, id), Return::returned);
      ASSERT_EQ(mine.takeBack(id, "pen", 1, id + "p"), Return::returned);
    } else if (bought) {
      ASSERT_EQ(mine.takeBack(id, "cap", 1, id), Return::returned);
    }
    ASSERT_EQ(shop.level("pen"), 5);
    ASSERT_EQ(shop.level("cap"), 1);
  }
  RecordProperty("confirmed", confirmed);
  expectBalance();
}

INSTANTIATE_TEST_SUITE_P(All, Reservations,
                         ::testing::Combine(::testing::ValuesIn(allBackends),
                                            ::testing::Values(Way::conditionalUpdate)),
                         [](const auto& each) { return nameOf(std::get<Backend>(each.param)); });

// Only SQLite takes its clock from the test.
TEST(ReservationsOnSqlite, StayExpiredWhenTheClockIsSetBack) {
  const auto clock = std::make_shared<lockkeeper::testing::FakeClock>();
  Shop shop(Backend::sqlite);
  StockService service = shop.service(Way::conditionalUpdate, {.environment = {.clock = clock}});
  service.restock("pen", 1, "pen");
  service.restock("ink", 1, "ink");
  ASSERT_EQ(textOf(service.reserve({{"ink", 1}, {"pen", 1}}, 1min, "r")), "held ink 1 pen 1");
  clock->advance(1min);
  ASSERT_EQ(service.deduct("pen", 1, "o"), Deduction::deducted);
  clock->setWallClock(clock->wallNow() - 1h);
  EXPECT_EQ(service.extend("r", 1min), ReservationState::expired);
  EXPECT_EQ(service.confirm("r"), ReservationState::expired) << "the pen is sold";
  EXPECT_EQ(shop.level("ink"), 1);
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

/// Each statement that asks SQLite for the time takes so long.
class SlowStatements final : public Clock {
 public:
  std::chrono::seconds each{0};

  Instant now() const noexcept override { return clock_.now(); }
  WallTime wallNow() const noexcept override {
    clock_.advance(each);
    return clock_.wallNow();
  }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    clock_.wait(held, wakeUp, until);
  }

 private:
  mutable lockkeeper::testing::FakeClock clock_;
};

class SqliteReservations : public ::testing::Test {
 protected:
  SqliteReservations() {
    service.restock("pen", 2);
    service.restock("ink", 2);
  }

  const std::vector<CartLine> one{{"pen", 1}};
  const std::vector<CartLine> several{{"ink", 1}, {"pen", 1}};
  std::shared_ptr<SlowStatements> statements = std::make_shared<SlowStatements>();
  Shop shop{Backend::sqlite};
  StockService service =
      shop.service(Way::conditionalUpdate, {.operationTimeout = 10s, .environment = {.clock = statements}});
};

TEST_F(SqliteReservations, AreSettledInTimeOrNotAtAll) {
  ASSERT_EQ(service.reserve(one, 24h, "one").state, ReservationState::held);
  ASSERT_EQ(service.reserve(several, 24h, "several").state, ReservationState::held);
  for (const char* id : {"one", "several"}) {
    statements->each = 80s;
    EXPECT_THROW((void)service.confirm(id), StoreUnavailable) << id;
    EXPECT_THROW((void)service.cancel(id), StoreUnavailable) << id;
    EXPECT_THROW((void)service.extend(id, 48h), StoreUnavailable) << id;
    statements->each = 0s;
    EXPECT_EQ(service.confirm(id), ReservationState::confirmed) << id;
  }
}

TEST_F(SqliteReservations, ThatHaveExpiredAreAnsweredInTimeOrNotAtAll) {
  // Short enough that the call finds out in time that its id has expired.
  for (const auto& [cart, each] : {std::pair{one, 30s}, std::pair{several, 40s}}) {
    const std::string id = cart.front().sku;
    ASSERT_EQ(service.reserve(cart, 1ms, id).state, ReservationState::held);
    statements->each = each;
    EXPECT_THROW((void)service.reserve(cart, 1h, id), StoreUnavailable) << id;
    statements->each = 0s;
    EXPECT_EQ(service.reserve(cart, 1h, id).state, ReservationState::expired) << id;
  }
}

TEST_F(SqliteReservations, OfSeveralArticlesPutBackWhatHasExpiredInTimeAndGoOnWithTheNextCall) {
  shop.addExpired("pen", 1'000);
  const std::vector<CartLine> cart{{"ink", 1}, {"pen", 1'000}};
  statements->each = 40s;  // time for one portion
  EXPECT_THROW((void)service.reserve(cart, 1h, "cart"), StoreUnavailable);
  EXPECT_EQ(shop.level("pen"), 202);
  statements->each = 0s;
  EXPECT_EQ(service.reserve(cart, 1h, "cart").state, ReservationState::held);
  EXPECT_EQ(shop.level("pen"), 2);
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

TEST_F(SqliteReservations, AreSoldInTimeOrNotAtAllInEveryWay) {
  for (const Way way : allWays) {
    StockService selling = shop.service(way, {.operationTimeout = 10s, .environment = {.clock = statements}});
    const std::string name = nameOf(way);
    shop.addExpired("pen", 1'000, name);
    statements->each = 40s;  // time for one portion
    EXPECT_THROW((void)selling.deduct("pen", 1'000, name), StoreUnavailable) << name;
    statements->each = 0s;
    EXPECT_EQ(selling.deduct("pen", 1'000, name), Deduction::deducted) << name;
  }
  EXPECT_EQ(shop.level("pen"), 2);
}

class ReservationFaults : public Reservations {
 protected:
  /// Cuts the reply to `call` after each of its bytes in turn.
  void endInTheTruth(const std::function<void(StockService&, const std::string& id)>& call) {
    // So many that their level has as many digits in the end as in the beginning: replies are of one length.
    service.restock("pen", 50'000, "many");
    service.restock("ink", 50'000, "many ink");
    call(distant, "connect");
    proxy.passThrough();
    call(distant, "0000");
    const std::size_t replyBytes = proxy.replyBytes();
    for (std::size_t bytes = 0; bytes < replyBytes; bytes += 7) {
      proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
      call(distant, std::to_string(1000 + bytes));
      EXPECT_EQ(proxy.fired(), 1U) << "nothing was cut after " << bytes << " bytes";
    }
    EXPECT_EQ(shop.level("pen") + shop.reserved("pen"), 50'005);
    expectBalance();
  }

  FaultProxy proxy{serverOf(shop.backend()).port()};
  StockService distant{
      shop.uriBy(proxy.port()), shop.manager(), Way::conditionalUpdate, {.operationTimeout = 1s}};
};

TEST_P(ReservationFaults, EveryCutReplyToACartEndsInTheTruth) {
  endInTheTruth([](StockService& stock, const std::string& id) {
    EXPECT_EQ(textOf(stock.reserve({{"pen", 2}, {"ink", 1}}, 10min, id)), "held ink 1 pen 2") << id;
  });
}

TEST_P(ReservationFaults, EveryCutReplyToAConfirmationEndsInTheTruth) {
  endInTheTruth([this](StockService& stock, const std::string& id) {
    ASSERT_EQ(service.reserve({{"pen", 2}, {"ink", 1}}, 10min, id).state, ReservationState::held);
    EXPECT_EQ(stock.confirm(id), ReservationState::confirmed) << id;
  });
}

TEST_P(ReservationFaults, EveryCutReplyToACancellationEndsInTheTruth) {
  endInTheTruth([this](StockService& stock, const std::string& id) {
    ASSERT_EQ(service.reserve({{"pen", 2}, {"ink", 1}}, 10min, id).state, ReservationState::held);
    EXPECT_EQ(stock.cancel(id), ReservationState::cancelled) << id;
  });
}

TEST_P(ReservationFaults, EveryCutReplyToAReplacementEndsInTheTruth) {
  endInTheTruth([this](StockService& stock, const std::string& id) {
    ASSERT_EQ(service.reserve({{"pen", 1}}, 10min, id).state, ReservationState::held);
    EXPECT_EQ(textOf(stock.replace({{"pen", 2}, {"ink", 1}}, 10min, id)), "held ink 1 pen 2") << id;
  });
}

INSTANTIATE_TEST_SUITE_P(All, ReservationFaults,
                         ::testing::Combine(::testing::ValuesIn(allServers),
                                            ::testing::Values(Way::conditionalUpdate)),
                         [](const auto& each) { return nameOf(std::get<Backend>(each.param)); });

}  // namespace
}  // namespace lockkeeper::test
