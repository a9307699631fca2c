// Sold out is remembered: refused without the database, and never for longer than it is true for the caller.

#include <gtest/gtest.h>

#include <Poco/Data/Statement.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "database/database.h"
#include "lockkeeper/testing/fake_clock.h"
#include "order/sold_out_memory.h"
#include "shop.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::Deduction;
using inventory::SoldOutMemory;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::now;

class SoldOut : public ::testing::TestWithParam<Backend> {
 protected:
  // So that nothing but a memory can answer.
  void hideTheTables() {
    for (const char* table : {"stock", "orders"}) {
      shop.session() << "ALTER TABLE lockkeeper_" + std::string(table) + " RENAME TO hidden_" + table, now;
    }
  }

  Deduction order(std::int64_t quantity) { return service.deduct("pen", quantity, std::to_string(++orders)); }

  Shop shop{GetParam()};
  std::shared_ptr<lockkeeper::testing::FakeClock> clock = std::make_shared<lockkeeper::testing::FakeClock>();
  StockService service =
      shop.service(Way::conditionalUpdate, {.rememberSoldOut = 100ms, .environment = {.clock = clock}});
  StockService other = shop.service(Way::conditionalUpdate);
  int orders = 0;
};

TEST_P(SoldOut, IsToldWithoutTheDatabase) {
  service.restock("pen", 1);
  EXPECT_EQ(order(2), Deduction::soldOut);
  hideTheTables();
  EXPECT_EQ(order(2), Deduction::soldOut);
  EXPECT_EQ(order(3), Deduction::soldOut);
  EXPECT_THROW((void)order(1), ConfigError) << "of which there may be enough";
  clock->advance(100ms);
  EXPECT_THROW((void)order(2), ConfigError) << "it is time to look again";
}

TEST_P(SoldOut, IsOverWithARestockOfThisService) {
  service.restock("pen", 1);
  EXPECT_EQ(order(2), Deduction::soldOut);
  service.restock("pen", 1);
  EXPECT_EQ(order(2), Deduction::deducted);
}

TEST_P(SoldOut, IsOverInTimeWithARestockOfAnotherService) {
  service.restock("pen", 1);
  EXPECT_EQ(order(2), Deduction::soldOut);
  other.restock("pen", 2);
  clock->advance(99ms);
  EXPECT_EQ(order(2), Deduction::soldOut);
  clock->advance(1ms);
  EXPECT_EQ(order(2), Deduction::deducted);
  EXPECT_EQ(order(2), Deduction::soldOut);
  clock->advance(100ms);
  EXPECT_EQ(order(2), Deduction::soldOut) << "it has looked again";
  hideTheTables();
  EXPECT_EQ(order(2), Deduction::soldOut) << "and remembers that";
}

TEST_P(SoldOut, IsWhatAsksForMoreThanThereIs) {
  service.restock("pen", 3);
  EXPECT_EQ(order(4), Deduction::soldOut);
  EXPECT_EQ(order(2), Deduction::deducted);
  EXPECT_EQ(order(1), Deduction::deducted);
  EXPECT_EQ(shop.level("pen"), 0);
}

TEST_P(SoldOut, IsNoAnswerToWhoHasBookedTheLastOnes) {
  const std::string strange("id\0 with \xff", 10);
  other.restock("pen", 4);
  EXPECT_EQ(other.deduct("pen", 2, "first"), Deduction::deducted);
  EXPECT_EQ(other.deduct("pen", 2, strange), Deduction::deducted);
  EXPECT_EQ(order(2), Deduction::soldOut);
  EXPECT_EQ(order(2), Deduction::soldOut);
  EXPECT_EQ(service.deduct("pen", 2, "first"), Deduction::duplicate);
  EXPECT_EQ(service.deduct("pen", 2, strange), Deduction::duplicate);
  other.restock("pen", 2);
  EXPECT_EQ(other.deduct("pen", 2, "later"), Deduction::deducted);
  clock->advance(100ms);
  EXPECT_EQ(order(2), Deduction::soldOut);
  clock->advance(100ms);
  EXPECT_EQ(service.deduct("pen", 2, "later"), Deduction::duplicate);
}

// Without the database nobody can know of what other services have done meanwhile.
TEST_P(SoldOut, IsToldOfAnOrderThatAnotherServiceHasBookedOnlyWhileItIsRemembered) {
  StockService forgetful = shop.service(Way::conditionalUpdate, {.rememberSoldOut = 0ms});
  service.restock("pen", 1);
  EXPECT_EQ(order(2), Deduction::soldOut);
  EXPECT_EQ(forgetful.deduct("pen", 2, "another"), Deduction::soldOut);
  other.restock("pen", 1);
  EXPECT_EQ(other.deduct("pen", 2, "booked"), Deduction::deducted);
  EXPECT_EQ(forgetful.deduct("pen", 2, "booked"), Deduction::duplicate) << "it asks each time";
  EXPECT_EQ(other.deduct("pen", 2, "another"), Deduction::soldOut);
  EXPECT_EQ(other.deduct("pen", 2, "booked"), Deduction::duplicate) << "a service knows what it has booked";
  clock->advance(99ms);
  EXPECT_EQ(service.deduct("pen", 2, "booked"), Deduction::soldOut);
  clock->advance(1ms);
  EXPECT_EQ(service.deduct("pen", 2, "booked"), Deduction::duplicate);
}

TEST_P(SoldOut, CanBeAskedEachTime) {
  StockService forgetful = shop.service(Way::conditionalUpdate, {.rememberSoldOut = 0ms});
  forgetful.restock("pen", 1);
  EXPECT_EQ(forgetful.deduct("pen", 2, "a"), Deduction::soldOut);
  other.restock("pen", 1);
  EXPECT_EQ(forgetful.deduct("pen", 2, "a"), Deduction::deducted);
}

/// Runs something each time that it is asked for the time.
class InterruptingClock final : public Clock {
 public:
  std::function<void()> interrupt = [] {};

  Instant now() const noexcept override {
    interrupt();
    return systemClock()->now();
  }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    systemClock()->wait(held, wakeUp, until);
  }
};

TEST_P(SoldOut, IsNotRememberedFromBeforeARestock) {
  inventory::Database database(shop.uri(), {});
  const auto interrupting = std::make_shared<InterruptingClock>();
  SoldOutMemory memory(database, interrupting, 1min);
  const inventory::Order order{.sku = "pen", .quantity = 2, .orderId = "order"};
  other.restock("pen", 1);
  bool restocked = false;
  // When the look has begun, and nothing is remembered yet.
  interrupting->interrupt = [&] {
    if (!std::exchange(restocked, true)) memory.forget("pen");
  };
  memory.look("pen", 2, Instant::max());
  EXPECT_TRUE(restocked);
  EXPECT_EQ(memory.judge(order), SoldOutMemory::Verdict::open);
  memory.look("pen", 2, Instant::max());
  EXPECT_EQ(memory.judge(order), SoldOutMemory::Verdict::soldOut);
}

TEST_P(SoldOut, IsRememberedFromALookDuringARestockOfAnotherArticle) {
  inventory::Database database(shop.uri(), {});
  const auto interrupting = std::make_shared<InterruptingClock>();
  SoldOutMemory memory(database, interrupting, 1min);
  other.restock("pen", 1);
  int restocks = 0;
  interrupting->interrupt = [&] {
    memory.forget("ink");
    ++restocks;
  };
  memory.look("pen", 2, Instant::max());
  EXPECT_EQ(restocks, 1);
  EXPECT_EQ(memory.judge({.sku = "pen", .quantity = 2, .orderId = "order"}), SoldOutMemory::Verdict::soldOut);
}

TEST_P(SoldOut, IsRememberedWhileNothingOfTheArticleComesBack) {
  service.restock("pen", 3);
  service.restock("ink", 3);
  using State = inventory::ReservationState;
  ASSERT_EQ(service.reserve({{"pen", 1}}, 1h, "sold").state, State::held);
  ASSERT_EQ(service.reserve({{"pen", 1}}, 1h, "kept").state, State::held);
  ASSERT_EQ(service.reserve({{"ink", 1}}, 1h, "ink").state, State::held);
  ASSERT_EQ(order(2), Deduction::soldOut);
  service.restock("ink", 1);
  EXPECT_EQ(service.cancel("ink"), State::cancelled);
  EXPECT_EQ(service.extend("kept", 2h), State::held);
  EXPECT_EQ(service.confirm("sold"), State::confirmed);
  hideTheTables();
  EXPECT_EQ(order(2), Deduction::soldOut);
}

/// One more than are read by three pages: 1,000, 1,000 and 2,000.
class SoldOutWithManyOrders : public SoldOut {
 protected:
  using Verdict = SoldOutMemory::Verdict;

  SoldOutWithManyOrders() {
    service.restock("pen", 1);
    shop.addOrders("pen", 4'001, "many");
  }

  void look() {
    clock->advance(100ms);
    memory.look("pen", 2, Instant::max());
  }
  /// As when so many orders are refused.
  void readOn(int refusals) {
    for (int refused = 0; refused < refusals; ++refused) memory.readOn("pen", Instant::max());
  }
  Verdict verdict(const std::string& id) {
    return memory.judge({.sku = "pen", .quantity = 2, .orderId = id});
  }
  void expectAllAreKnown() {
    EXPECT_EQ(verdict("new"), Verdict::soldOut);
    for (const char* booked : {"many0", "many999", "many1000", "many2001", "many4000"}) {
      EXPECT_EQ(verdict(booked), Verdict::open) << booked;
    }
  }

  std::shared_ptr<InterruptingClock> interrupting = std::make_shared<InterruptingClock>();
  inventory::Database database{shop.uri(), {.environment = {.clock = interrupting}}};
  SoldOutMemory memory{database, clock, 100ms};
  // A page costs a refusal for ten of its orders. The first one is read by the look.
  static constexpr int refusalsUntilAllAreKnown = 100 + 200 + 400;
};

TEST_P(SoldOutWithManyOrders, AsksForTheIdsAloneUntilAllAreKnown) {
  const auto expectDuplicates = [&] {
    for (const char* booked : {"many0", "many999", "many1000", "many4000"}) {
      EXPECT_EQ(service.deduct("pen", 2, booked), Deduction::duplicate) << booked;
    }
  };
  EXPECT_EQ(order(2), Deduction::soldOut);
  shop.session() << "ALTER TABLE lockkeeper_stock RENAME TO hidden_stock", now;
  EXPECT_EQ(order(2), Deduction::soldOut);
  shop.session() << "ALTER TABLE hidden_stock RENAME TO lockkeeper_stock", now;
  expectDuplicates();
  while (orders < refusalsUntilAllAreKnown) ASSERT_EQ(order(2), Deduction::soldOut);
  expectDuplicates();
  hideTheTables();
  EXPECT_EQ(order(2), Deduction::soldOut);
}

TEST_P(SoldOutWithManyOrders, ReadsThemNoFasterThanTheyAreAskedAbout) {
  look();
  readOn(refusalsUntilAllAreKnown - 1);
  EXPECT_EQ(verdict("new"), Verdict::unlessBooked);
  EXPECT_EQ(verdict("many0"), Verdict::unlessBooked);
  readOn(1);
  expectAllAreKnown();
}

TEST_P(SoldOutWithManyOrders, LetsOneCallerReadAndNobodyWait) {
  look();
  bool isReading = false;
  int interrupts = 0;
  interrupting->interrupt = [&] {
    EXPECT_FALSE(isReading) << "another one reads";
    if (std::exchange(isReading, true)) return;
    ++interrupts;
    readOn(200);
    EXPECT_EQ(verdict("new"), Verdict::unlessBooked);
    isReading = false;
  };
  readOn(100);
  EXPECT_GT(interrupts, 0);
}

TEST_P(SoldOutWithManyOrders, KnowsThemWhileNothingIsBooked) {
  using State = inventory::ReservationState;
  StockService optimistic = shop.service(Way::lockedOptimistic);
  other.restock("pen", 4, "delivery");
  ASSERT_EQ(other.deduct("pen", 2, "partly returned"), Deduction::deducted);
  ASSERT_EQ(other.takeBack("partly returned", "pen", 1, "return"), inventory::Return::returned);
  ASSERT_EQ(other.reserve({{"pen", 1}}, 1h, "sold").state, State::held);
  ASSERT_EQ(other.reserve({{"pen", 1}}, 1h, "kept").state, State::held);
  ASSERT_EQ(shop.level("pen"), 2);
  const auto lookForMore = [&] {
    clock->advance(100ms);
    memory.look("pen", 3, Instant::max());
  };
  const auto verdictOnMore = [&] { return memory.judge({.sku = "pen", .quantity = 3, .orderId = "new"}); };
  lookForMore();
  readOn(refusalsUntilAllAreKnown);
  ASSERT_EQ(verdictOnMore(), Verdict::soldOut);
  EXPECT_EQ(other.deduct("pen", 1, "many7"), Deduction::duplicate);
  EXPECT_EQ(optimistic.deduct("pen", 1, "many8"), Deduction::duplicate);
  EXPECT_EQ(other.restock("pen", 4, "delivery"), inventory::Restock::duplicate);
  EXPECT_EQ(other.takeBack("partly returned", "pen", 1, "return"), inventory::Return::duplicate);
  EXPECT_EQ(other.reserve({{"pen", 9}}, 1h, "more").state, State::soldOut);
  EXPECT_EQ(other.reserve({{"pen", 1}}, 1h, "kept").state, State::held);
  EXPECT_EQ(other.extend("kept", 2h), State::held);
  EXPECT_EQ(other.confirm("sold"), State::confirmed);
  lookForMore();
  EXPECT_EQ(verdictOnMore(), Verdict::soldOut);
}

TEST_P(SoldOutWithManyOrders, ReadsThemAllAgainWhenOneHasBeenBookedMeanwhile) {
  look();
  readOn(100);
  EXPECT_EQ(other.deduct("pen", 1, "meanwhile"), Deduction::deducted);
  // As if the server's clock had been set back: before those that have been read.
  shop.session() << "UPDATE lockkeeper_orders SET written_at = 0 WHERE order_id = 'meanwhile'", now;
  readOn(refusalsUntilAllAreKnown);
  EXPECT_EQ(verdict("new"), Verdict::unlessBooked) << "no page counts that was read after that";
  look();
  readOn(refusalsUntilAllAreKnown);
  expectAllAreKnown();
  EXPECT_EQ(verdict("meanwhile"), Verdict::open);
}

using SoldOutWithFormerOrders = SoldOutWithManyOrders;

TEST_P(SoldOutWithFormerOrders, AreKnownThoughTheyHaveNoTime) {
  shop.session() << "UPDATE lockkeeper_orders SET written_at = NULL WHERE order_id <> 'many7'", now;
  look();
  readOn(refusalsUntilAllAreKnown);
  expectAllAreKnown();
  EXPECT_EQ(verdict("many7"), Verdict::open);
}

TEST_P(SoldOutWithManyOrders, KnowsWhatItHasBookedItself) {
  EXPECT_EQ(order(2), Deduction::soldOut);
  EXPECT_EQ(service.deduct("pen", 1, "the last one"), Deduction::deducted);
  EXPECT_EQ(service.deduct("pen", 2, "the last one"), Deduction::duplicate) << "as soon as it is booked";
  clock->advance(100ms);
  while (orders <= refusalsUntilAllAreKnown) ASSERT_EQ(order(2), Deduction::soldOut);
  EXPECT_EQ(service.deduct("pen", 2, "the last one"), Deduction::duplicate);
  hideTheTables();
  EXPECT_EQ(order(2), Deduction::soldOut) << "all are known";
}

INSTANTIATE_TEST_SUITE_P(All, SoldOut, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });
INSTANTIATE_TEST_SUITE_P(All, SoldOutWithManyOrders, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });
// No former version wrote on PostgreSQL.
INSTANTIATE_TEST_SUITE_P(All, SoldOutWithFormerOrders,
                         ::testing::Values(Backend::sqlite, Backend::mariadb, Backend::mysql),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
