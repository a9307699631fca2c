// Sold out is remembered: refused without the database, and never for longer than it is true for the caller.

#include <gtest/gtest.h>

#include <Poco/Data/Statement.h>

#include <chrono>
#include <functional>
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

/// Runs something when it is asked for the time for the first time.
class InterruptingClock final : public Clock {
 public:
  std::function<void()> interrupt;

  Instant now() const noexcept override {
    if (++asked_ == 1) interrupt();
    return systemClock()->now();
  }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    systemClock()->wait(held, wakeUp, until);
  }

 private:
  mutable int asked_ = 0;
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
    memory.forget("pen");
    restocked = true;
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

// More than are remembered.
TEST_P(SoldOut, OfAnArticleWithManyOrdersAsksForTheIdsAlone) {
  service.restock("pen", 1);
  shop.addOrders("pen", 10'001, "many");
  EXPECT_EQ(order(2), Deduction::soldOut);
  shop.session() << "ALTER TABLE lockkeeper_stock RENAME TO hidden_stock", now;
  EXPECT_EQ(order(2), Deduction::soldOut);
  shop.session() << "ALTER TABLE hidden_stock RENAME TO lockkeeper_stock", now;
  for (const char* booked : {"many0", "many10000"}) {
    EXPECT_EQ(service.deduct("pen", 2, booked), Deduction::duplicate) << booked;
  }
  EXPECT_EQ(service.deduct("pen", 1, "the last one"), Deduction::deducted);
  EXPECT_EQ(service.deduct("pen", 2, "the last one"), Deduction::duplicate) << "as soon as it is booked";
}

INSTANTIATE_TEST_SUITE_P(All, SoldOut, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
