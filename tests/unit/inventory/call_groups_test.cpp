// Group commit of orders: who waits for whom, whose failure is whose, and whose time ends when.

#include "combine/call_groups.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "each_allocation.h"
#include "lockkeeper/testing/fake_clock.h"
#include "order/group_booking.h"

namespace lockkeeper::inventory {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<std::string>;

constexpr auto patience = 8s;

class CallGroupsTest : public ::testing::Test {
 protected:
  struct Transaction {
    Ids ids;
    Instant latest;
  };

  ~CallGroupsTest() override { allow(1000); }

  std::future<Deduction> place(const std::string& id, const std::string& sku = "pen",
                               std::chrono::seconds length = patience) {
    const Instant latest = clock->now() + length;
    return std::async(std::launch::async, [this, id, sku, latest] {
      return groups.place({.order = {.sku = sku, .quantity = 1, .orderId = id}}, latest).result;
    });
  }

  // Those who wait for others do so on the clock, the transactions do not.
  std::future<Deduction> placeBehind(std::size_t waiting, const std::string& id) {
    auto placed = place(id);
    EXPECT_TRUE(clock->awaitWaiters(waiting));
    return placed;
  }

  void awaitTransactions(std::size_t count) {
    std::unique_lock held(mutex);
    ASSERT_TRUE(changed.wait_for(held, 20s, [&] { return transactions.size() >= count; }));
  }

  // Lets so many more transactions end.
  void allow(std::size_t count) {
    const std::lock_guard guard(mutex);
    allowed += count;
    changed.notify_all();
  }

  void book(std::span<PlacedOrder* const> orders, Instant latest) {
    Ids ids;
    for (const PlacedOrder* each : orders) ids.push_back(each->order.orderId);
    std::unique_lock held(mutex);
    transactions.push_back({ids, latest});
    const std::size_t number = transactions.size();
    changed.notify_all();
    changed.wait(held, [&] { return allowed >= number; });
    for (PlacedOrder* each : orders) {
      each->result = Deduction::deducted;
      if (each->order.orderId == "bad") each->failure = std::make_exception_ptr(ConfigError("bad"));
      if (each->order.orderId == "outage") throw StoreUnavailable("down");
    }
  }

  std::shared_ptr<testing::FakeClock> clock = std::make_shared<testing::FakeClock>();
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t allowed = 0;
  std::vector<Transaction> transactions;
  CallGroups<PlacedOrder> groups{
      clock, [this](std::span<PlacedOrder* const> orders, Instant latest) { book(orders, latest); }};
};

TEST_F(CallGroupsTest, WhoComesMeanwhileIsBookedTogetherInTheOrderOfComing) {
  auto first = place("first");
  awaitTransactions(1);
  EXPECT_EQ(transactions[0].ids, Ids{"first"}) << "it has waited for nobody";
  std::vector<std::future<Deduction>> rest;
  for (const char* id : {"a", "b", "c"}) {
    rest.push_back(placeBehind(rest.size() + 1, id));
    clock->advance(1ms);
  }
  allow(2);
  EXPECT_EQ(first.get(), Deduction::deducted);
  for (auto& each : rest) EXPECT_EQ(each.get(), Deduction::deducted);
  ASSERT_EQ(transactions.size(), 2U);
  EXPECT_EQ(transactions[1].ids, (Ids{"a", "b", "c"}));
  EXPECT_EQ(transactions[1].latest, clock->now() - 1ms + patience) << "the time of the one who came last";
}

TEST_F(CallGroupsTest, WhoseTimeEndsLastBooksForAllWheneverItCame) {
  auto first = place("first");
  awaitTransactions(1);
  auto patient = place("patient", "pen", 2 * patience);
  ASSERT_TRUE(clock->awaitWaiters(1));
  auto hasty = placeBehind(2, "hasty");
  allow(2);
  EXPECT_EQ(patient.get(), Deduction::deducted);
  EXPECT_EQ(hasty.get(), Deduction::deducted);
  ASSERT_EQ(transactions.size(), 2U);
  EXPECT_EQ(transactions[1].latest, clock->now() + 2 * patience);
}

TEST_F(CallGroupsTest, ArticlesDoNotWaitForEachOther) {
  auto pen = place("1", "pen");
  auto ink = place("2", "ink");
  awaitTransactions(2);
  allow(2);
  EXPECT_EQ(pen.get(), Deduction::deducted);
  EXPECT_EQ(ink.get(), Deduction::deducted);
}

TEST_F(CallGroupsTest, NoTransactionIsForMoreThan512) {
  auto first = place("first");
  awaitTransactions(1);
  std::vector<std::future<Deduction>> rest;
  for (int caller = 0; caller < 520; ++caller) rest.push_back(place(std::to_string(caller)));
  ASSERT_TRUE(clock->awaitWaiters(rest.size()));
  allow(3);
  for (auto& each : rest) EXPECT_EQ(each.get(), Deduction::deducted);
  ASSERT_EQ(transactions.size(), 3U);
  EXPECT_EQ(transactions[1].ids.size(), 512U);
  EXPECT_EQ(transactions[2].ids.size(), 8U);
}

TEST_F(CallGroupsTest, WhoseTimeIsUpBeforeItsTurnIsNotBooked) {
  auto first = place("first");
  awaitTransactions(1);
  auto hasty = placeBehind(1, "hasty");
  clock->advance(1s);
  auto late = placeBehind(2, "late");
  clock->advance(patience - 1s);
  EXPECT_THROW((void)hasty.get(), StoreUnavailable);
  allow(2);
  EXPECT_EQ(first.get(), Deduction::deducted) << "whoever books ends by the time that it was given";
  EXPECT_EQ(late.get(), Deduction::deducted);
  EXPECT_EQ(transactions[1].ids, Ids{"late"});
}

TEST_F(CallGroupsTest, WhoseTimeIsUpWhileItIsBookedLeavesInDoubtAndTheOthersStay) {
  auto first = place("first");
  awaitTransactions(1);
  auto hasty = placeBehind(1, "hasty");
  clock->advance(1s);
  auto late = placeBehind(2, "late");
  allow(1);
  awaitTransactions(2);
  EXPECT_EQ(transactions[1].ids, (Ids{"hasty", "late"}));
  clock->advance(patience - 1s);
  EXPECT_THROW((void)hasty.get(), OutcomeUnknown);
  allow(1);
  EXPECT_EQ(late.get(), Deduction::deducted);
}

TEST_F(CallGroupsTest, OneOrdersFailureIsNobodyElses) {
  auto first = place("first");
  awaitTransactions(1);
  auto good = placeBehind(1, "good");
  auto bad = placeBehind(2, "bad");
  allow(2);
  EXPECT_EQ(good.get(), Deduction::deducted);
  EXPECT_THROW((void)bad.get(), ConfigError);
}

TEST_F(CallGroupsTest, ATransactionThatThrowsFailsItsOwnOrdersAndTheNextOneGoesOn) {
  auto first = place("first");
  awaitTransactions(1);
  auto good = placeBehind(1, "good");
  auto outage = placeBehind(2, "outage");
  allow(1);
  awaitTransactions(2);
  auto next = placeBehind(1, "next");
  allow(2);
  EXPECT_THROW((void)good.get(), StoreUnavailable);
  EXPECT_THROW((void)outage.get(), StoreUnavailable);
  EXPECT_EQ(next.get(), Deduction::deducted);
}

TEST_F(CallGroupsTest, MemoryThatACallerLacksHoldsNobodyUp) {
  allow(1000);
  const auto allocations = test::failEachAllocation(
      [&] {
        (void)groups.place({.order = {.sku = "an article with a long name", .quantity = 1, .orderId = "one"}},
                           Instant::max());
      },
      [&] {
        auto next = place("next", "an article with a long name");
        ASSERT_EQ(next.wait_for(20s), std::future_status::ready);
        EXPECT_EQ(next.get(), Deduction::deducted);
      });
  EXPECT_GT(allocations, 3U);
}

}  // namespace
}  // namespace lockkeeper::inventory
