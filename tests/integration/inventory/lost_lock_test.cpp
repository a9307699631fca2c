// A holder is paused, its lease ends, somebody else sells; then the former holder wakes up.

#include <Poco/Data/Statement.h>

#include <functional>
#include <future>

#include "decorators.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using inventory::Deduction;
using inventory::StockOptions;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::now;

Instant soon() { return systemClock()->now() + std::chrono::seconds{10}; }

/// Another process's view of the same lock store, in which a holder can be paused between its grant and
/// whatever it does next.
class PausedHolderDriver final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  /// Runs once, when the next lock has been granted and its holder does not know yet.
  std::function<void()> duringThePause;

  AcquireResult acquire(const AcquireRequest& request) override {
    const AcquireResult result = inner_->acquire(request);
    if (duringThePause) std::exchange(duringThePause, nullptr)();
    return result;
  }
  Promises promises() const override { return promised; }

  Promises promised{FencePromise::durable, "for tests"};
};

class LostLockTest : public ::testing::TestWithParam<Backend> {
 protected:
  Shop shop{GetParam()};
  std::shared_ptr<PausedHolderDriver> pausing = std::make_shared<PausedHolderDriver>(shop.sharedLocks());
  LockManager otherProcess{pausing};
};

TEST_P(LostLockTest, TheRowRefusesAFormerHolder) {
  StockService former(shop.uri(), otherProcess, Way::fencedRow);
  StockService next = shop.service(Way::fencedRow);
  next.restock("pen", 10);
  pausing->duringThePause = [&] {
    ASSERT_TRUE(shop.locks().breakLock("stock:pen", soon())) << "the former holder has the lock";
    EXPECT_EQ(next.deduct("pen", 4, "next"), Deduction::deducted);
  };
  EXPECT_EQ(former.deduct("pen", 4, "former"), Deduction::conflict);
  EXPECT_EQ(shop.level("pen"), 6);
  EXPECT_FALSE(shop.booked("former"));
  EXPECT_EQ(former.deduct("pen", 4, "former"), Deduction::deducted) << "with a lock of its own it may";
}

TEST_P(LostLockTest, LockedOptimisticSellsWithoutItsLockAndNoMoreThanThereIs) {
  StockService former(shop.uri(), otherProcess, Way::lockedOptimistic);
  StockService next = shop.service(Way::lockedOptimistic);
  next.restock("pen", 9);
  pausing->duringThePause = [&] {
    ASSERT_TRUE(shop.locks().breakLock("stock:pen", soon()));
    EXPECT_EQ(next.deduct("pen", 4, "next"), Deduction::deducted);
  };
  EXPECT_EQ(former.deduct("pen", 4, "former"), Deduction::deducted);
  EXPECT_EQ(former.deduct("pen", 4, "another"), Deduction::soldOut);
  EXPECT_EQ(shop.level("pen"), 1);
}

TEST_P(LostLockTest, TheRowRefusesAFenceThatItHasSeen) {
  StockService first = shop.service(Way::fencedRow);
  first.restock("pen", 10);
  EXPECT_EQ(first.deduct("pen", 1, "1"), Deduction::deducted);
  LockManager forgetful(std::make_shared<MemoryDriver>());
  StockService second(shop.uri(), forgetful, Way::fencedRow);
  EXPECT_EQ(second.deduct("pen", 1, "2"), Deduction::conflict) << "two holders with one fence";
}

TEST_P(LostLockTest, RowsAcceptFencesFromANewCounterAfterAReset) {
  StockService first = shop.service(Way::fencedRow);
  first.restock("pen", 10);
  EXPECT_EQ(first.deduct("pen", 1, "1"), Deduction::deducted);
  EXPECT_EQ(first.deduct("pen", 1, "2"), Deduction::deducted);
  LockManager forgetful(std::make_shared<MemoryDriver>());
  StockService second(shop.uri(), forgetful, Way::fencedRow);
  EXPECT_EQ(second.deduct("pen", 1, "3"), Deduction::conflict);
  second.resetFences();
  EXPECT_EQ(second.deduct("pen", 1, "3"), Deduction::deducted);
}

TEST_P(LostLockTest, FencedRowNeedsAStoreWithFences) {
  pausing->promised.fence = FencePromise::none;
  EXPECT_THROW(StockService(shop.uri(), otherProcess, Way::fencedRow), ConfigError);
  EXPECT_NO_THROW(StockService(shop.uri(), otherProcess, Way::lockedOptimistic));
}

TEST_P(LostLockTest, ALockStoreThatIsDownMeansNothingWasBooked) {
  StockService service(shop.uri(), otherProcess, Way::lockedOptimistic,
                       {.lockWait = std::chrono::milliseconds{0}});
  service.restock("pen", 10);
  const auto fail = [&] { throw OutcomeUnknown("cut off"); };
  // Each attempt of the manager fails anew.
  std::function<void()> always = [&] {
    pausing->duringThePause = always;
    fail();
  };
  pausing->duringThePause = always;
  EXPECT_THROW((void)service.deduct("pen", 1, "order"), StoreUnavailable);
  EXPECT_EQ(shop.level("pen"), 10);
}

INSTANTIATE_TEST_SUITE_P(All, LostLockTest, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

/// On a server the next holder may write between the former one's read and its write: the transaction goes on
/// with what it has read. (SQLite lets nobody in between.)
class OvertakenTest : public ::testing::TestWithParam<std::tuple<Backend, Way>> {
 protected:
  const Way way = std::get<Way>(GetParam());

  /// deduct() stands in the middle of its transaction when `meanwhile` is committed.
  Deduction deductOvertakenBy(const std::string& meanwhile) {
    Poco::Data::Session other = shop.session();
    other.begin();
    other << meanwhile, now;
    auto result = std::async(std::launch::async, [&] { return service.deduct("pen", 4, "order"); });
    EXPECT_TRUE(waitUntil([&] { return shop.rowLockWaits() == 1; })) << "nobody waits for the row";
    other.commit();
    return result.get();
  }

  Shop shop{std::get<Backend>(GetParam())};
  StockService service = shop.service(way, {.operationTimeout = std::chrono::seconds{30}});
};

TEST_P(OvertakenTest, WritesNothingThatWasReadTooEarly) {
  service.restock("pen", 10);
  const auto result = deductOvertakenBy(
      "UPDATE lockkeeper_stock SET level = 5, fence = 1000, version = version + 1 WHERE sku = 'pen'");
  // The optimistic ways find out, and then read again.
  const bool refused = way == Way::fencedRow;
  EXPECT_EQ(result, refused ? Deduction::conflict : Deduction::deducted);
  EXPECT_EQ(shop.level("pen"), refused ? 5 : 1);
  EXPECT_EQ(shop.booked("order"), !refused);
}

INSTANTIATE_TEST_SUITE_P(All, OvertakenTest,
                         ::testing::Combine(::testing::ValuesIn(allServers), ::testing::ValuesIn(allWays)),
                         [](const auto& each) {
                           return nameOf(std::get<Backend>(each.param)) + nameOf(std::get<Way>(each.param));
                         });

}  // namespace
}  // namespace lockkeeper::test
