// Articles that are split into buckets: the answers and the totals are those of articles that are not,
// whoever knows of it.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "chosen_seed.h"
#include "combine/known_splits.h"
#include "group_faults.h"
#include "order/group_booking.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::CartRule;
using inventory::Deduction;
using inventory::ReservationState;
using inventory::Return;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Split : public ::testing::TestWithParam<Backend> {
 protected:
  std::int64_t number(const std::string& query) const {
    std::int64_t value = 0;
    Poco::Data::Session reading = shop.session();
    reading << query, into(value), now;
    return value;
  }
  std::int64_t bucketsOf(const std::string& sku) const {
    return number("SELECT COUNT(*) FROM lockkeeper_buckets WHERE sku = '" + sku + "'");
  }

  void expectBalance(const std::string& sku, std::int64_t stocked) {
    EXPECT_EQ(shop.level(sku) + shop.sold(sku) + shop.reserved(sku) - shop.returned(sku), stocked);
    EXPECT_EQ(service.level(sku), shop.level(sku));
    EXPECT_THAT(service.checkLedger(), IsEmpty());
  }

  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, {.rememberSoldOut = 0ms});
};

TEST_P(Split, SharesTheStockOutAndJoinsItAgain) {
  service.restock("pen", 100);
  EXPECT_TRUE(service.split("pen", 4));
  EXPECT_EQ(bucketsOf("pen"), 4);
  EXPECT_EQ(number("SELECT MIN(level) FROM lockkeeper_buckets"), 20);
  EXPECT_EQ(number("SELECT level FROM lockkeeper_stock"), 20);
  EXPECT_TRUE(service.split("pen", 4));
  EXPECT_TRUE(service.split("pen", 64));
  EXPECT_EQ(bucketsOf("pen"), 64);
  EXPECT_EQ(service.deduct("pen", 1, "order-1"), Deduction::deducted);
  expectBalance("pen", 100);
  EXPECT_TRUE(service.split("pen", 1));
  EXPECT_EQ(bucketsOf("pen"), 0);
  EXPECT_EQ(number("SELECT level FROM lockkeeper_stock"), 99);
  EXPECT_EQ(service.deduct("pen", 99, "order-2"), Deduction::deducted);
  EXPECT_TRUE(service.split("pen", 1));
  expectBalance("pen", 100);
}

TEST_P(Split, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(service.split("nothing", 4));
  EXPECT_FALSE(service.split("nothing", 1));
  const auto refusal = [&](std::size_t buckets) -> std::string {
    try {
      service.split("pen", buckets);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal(0), "buckets is 0: 1 to 64 are allowed");
  EXPECT_EQ(refusal(65), "buckets is 65: 1 to 64 are allowed");
}

TEST_P(Split, FindsTheLastPiecesWhereverTheyAre) {
  std::mt19937 random(chosenSeed());
  StockService other = shop.service(Way::conditionalUpdate, {.rememberSoldOut = 0ms});
  std::int64_t left = 60;
  service.restock("pen", left);
  service.split("pen", 7);
  for (int order = 0; left > 0; ++order) {
    const auto quantity = static_cast<std::int64_t>(1 + random() % 9);
    StockService& seller = random() % 2 == 0 ? service : other;
    const bool enough = quantity <= left;
    EXPECT_EQ(seller.deduct("pen", quantity, std::to_string(order)),
              enough ? Deduction::deducted : Deduction::soldOut)
        << quantity << " of " << left;
    if (enough) left -= quantity;
    EXPECT_EQ(service.level("pen"), left);
  }
  expectBalance("pen", 60);
}

TEST_P(Split, CartsFindTheLastPieces) {
  for (const char* sku : {"pen", "ink", "cap"}) service.restock(sku, 9);
  service.split("pen", 3);
  service.split("ink", 5);
  EXPECT_EQ(service.reserve({{"pen", 5}}, 1h, "one").state, ReservationState::held);
  EXPECT_EQ(service.reserve({{"ink", 9}, {"cap", 1}, {"pen", 4}}, 1h, "all").state, ReservationState::held);
  EXPECT_EQ(service.level("pen"), 0);
  EXPECT_EQ(service.reserve({{"ink", 1}, {"cap", 1}}, 1h, "more").state, ReservationState::soldOut);
  EXPECT_EQ(service.cancel("all"), ReservationState::cancelled);
  const auto part = service.reserve({{"ink", 20}, {"cap", 1}}, 1h, "part", CartRule::part);
  ASSERT_EQ(part.lines.size(), 2U);
  EXPECT_EQ(part.lines[1].quantity, 9);
  EXPECT_EQ(service.confirm("part"), ReservationState::confirmed);
  for (const char* sku : {"pen", "ink", "cap"}) expectBalance(sku, 9);
}

TEST_P(Split, WhatComesBackIsForSale) {
  service.restock("pen", 4);
  service.split("pen", 2);
  EXPECT_EQ(service.deduct("pen", 1, "a"), Deduction::deducted);
  EXPECT_EQ(service.deduct("pen", 3, "b"), Deduction::deducted);
  service.restock("pen", 6);
  EXPECT_EQ(service.takeBack("b", "pen", 3, "back"), Return::returned);
  EXPECT_EQ(service.reserve({{"pen", 9}}, 1ms, "expires").state, ReservationState::held);
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(service.deduct("pen", 9, "c"), Deduction::deducted);
  EXPECT_EQ(service.deduct("pen", 1, "d"), Deduction::soldOut);
  expectBalance("pen", 10);
}

TEST_P(Split, ServicesThatDoNotKnowOfItSellToTheLastPiece) {
  StockService other = shop.service(Way::conditionalUpdate, {.rememberSoldOut = 0ms});
  service.restock("pen", 40);
  int orders = 0;
  const auto sell = [&](std::int64_t quantity) {
    EXPECT_EQ(other.deduct("pen", quantity, std::to_string(orders++)), Deduction::deducted);
    EXPECT_EQ(service.deduct("pen", quantity, std::to_string(orders++)), Deduction::deducted);
  };
  sell(1);
  service.split("pen", 8);
  sell(2);
  other.split("pen", 3);
  sell(2);
  service.split("pen", 1);
  sell(2);
  other.split("pen", 2);
  sell(13);
  EXPECT_EQ(service.deduct("pen", 1, "more"), Deduction::soldOut);
  expectBalance("pen", 40);
}

TEST_P(Split, FormerVersionsSellWhatIsInTheArticlesRow) {
  service.restock("pen", 9);
  service.split("pen", 2);
  ASSERT_EQ(number("SELECT level FROM lockkeeper_stock"), 3);
  const std::string take =
      "UPDATE lockkeeper_stock SET level = level - 3, version = version + 1 WHERE level >= 3";
  shop.session() << take, now;
  shop.session()
      << "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES ('a', 'pen', 3, 1)",
      now;
  shop.session() << take, now;
  EXPECT_EQ(service.level("pen"), 6) << "sold out for them";
  EXPECT_EQ(service.deduct("pen", 6, "b"), Deduction::deducted);
  expectBalance("pen", 9);
}

TEST_P(Split, EntriesOfTheLedgerHaveNoLevelUntilItIsJoined) {
  service.restock("pen", 40, "r1");
  service.split("pen", 3);
  StockService other = shop.service(Way::conditionalUpdate);
  EXPECT_EQ(other.deduct("pen", 1, "o1"), Deduction::deducted);
  EXPECT_EQ(service.deduct("pen", 20, "o2"), Deduction::deducted);
  EXPECT_EQ(service.reserve({{"pen", 1}}, 1h, "c1").state, ReservationState::held);
  EXPECT_EQ(service.cancel("c1"), ReservationState::cancelled);
  service.restock("pen", 1, "r2");
  service.split("pen", 1);
  EXPECT_EQ(service.deduct("pen", 1, "o3"), Deduction::deducted);
  std::vector<std::string> entries;
  for (const auto& each : service.ledger("pen")) {
    entries.push_back(each.id + (each.levelAfter ? " " + std::to_string(*each.levelAfter) : ""));
  }
  EXPECT_THAT(entries, ::testing::UnorderedElementsAre("r1 40", "o1", "o2", "c1", "c1", "r2", "o3 19"));
}

TEST_P(Split, OtherWaysRefuseToSellAndNameTheArticle) {
  service.restock("pen", 40);
  for (const Way way : {Way::fencedRow, Way::optimistic, Way::lockedOptimistic}) {
    StockService other = shop.service(way);
    const std::string id = toString(way);
    EXPECT_EQ(other.deduct("pen", 1, id), Deduction::deducted);
    service.split("pen", 4);
    try {
      (void)other.deduct("pen", 1, id + " again");
      ADD_FAILURE() << id << " sold it";
    } catch (const ConfigError& error) {
      EXPECT_STREQ(error.what(),
                   "the article 'pen' is split into 4 buckets, from which only Way::conditionalUpdate "
                   "sells; split(sku, 1) joins them");
    }
    EXPECT_FALSE(shop.booked(id + " again"));
    EXPECT_EQ(other.deduct("pen", 1, id), Deduction::duplicate);
    EXPECT_EQ(other.reserve({{"pen", 1}}, 1h, id).state, ReservationState::held);
    other.split("pen", 1);
    EXPECT_EQ(other.deduct("pen", 1, id + " again"), Deduction::deducted);
  }
  expectBalance("pen", 40);
}

/// Takes from the first bucket.
class Zeros final : public Random {
 public:
  void fill(std::span<std::byte> out) override { std::ranges::fill(out, std::byte{0}); }
};

// The row is not written by who takes from a bucket.
TEST_P(Split, WhatIsRememberedAsSoldOutKnowsTheOrdersOfAllBuckets) {
  inventory::StockOptions options;
  options.environment.random = std::make_shared<Zeros>();
  StockService first = shop.service(Way::conditionalUpdate, options);
  StockService remembers = shop.service(Way::conditionalUpdate, {.rememberSoldOut = 1min});
  service.restock("pen", 9);
  first.split("pen", 2);
  shop.session() << "UPDATE lockkeeper_stock SET level = 0", now;
  shop.session() << "UPDATE lockkeeper_buckets SET level = CASE bucket WHEN 0 THEN 9 ELSE 0 END", now;
  EXPECT_EQ(remembers.deduct("pen", 10, "big"), Deduction::soldOut);
  EXPECT_EQ(first.deduct("pen", 9, "order"), Deduction::deducted);
  EXPECT_EQ(remembers.deduct("pen", 1, "small"), Deduction::soldOut);
  EXPECT_EQ(remembers.deduct("pen", 9, "order"), Deduction::duplicate);
  EXPECT_EQ(remembers.deduct("pen", 1, "small"), Deduction::soldOut);
}

/// Sells single pieces with several services at once until there are none, while the article is split anew.
TEST_P(Split, NoPieceIsLostOrRefusedWhileItIsSplitAnew) {
  constexpr int services = 3;
  constexpr int callers = 4;
  const std::int64_t stocked = GetParam() == Backend::sqlite ? 300 : 3000;
  service.restock("pen", stocked);
  service.restock("ink", stocked);
  std::vector<StockService> sellers;
  for (int i = 0; i < services; ++i) {
    sellers.push_back(
        shop.service(Way::conditionalUpdate, {.operationTimeout = 1min, .rememberSoldOut = 0ms}));
  }
  std::atomic<std::int64_t> sold = 0;
  std::atomic<bool> over = false;
  std::mutex mutex;
  std::vector<std::string> refusedTooEarly;
  const auto sell = [&](int caller) {
    StockService& stock = sellers[static_cast<std::size_t>(caller % services)];
    for (int order = 0;; ++order) {
      const std::string id = std::to_string(caller) + "-" + std::to_string(order);
      const auto kind = (caller + order) % 3;
      bool got = false;
      if (kind == 0) {
        got = stock.deduct("pen", 1, id) == Deduction::deducted;
      } else if (kind == 1) {
        got = stock.reserve({{"pen", 1}}, 1h, id).state == ReservationState::held;
        if (got) {
          EXPECT_EQ(stock.confirm(id), ReservationState::confirmed);
        }
      } else {
        const auto cart = stock.reserve({{"pen", 1}, {"ink", 1}}, 1h, id);
        got = cart.state == ReservationState::held;
      }
      if (!got) {
        const std::int64_t left = stock.level("pen").value();  // Nothing ever comes back.
        const std::lock_guard held(mutex);
        if (left > 0) refusedTooEarly.push_back(id + " with " + std::to_string(left) + " left");
        return;
      }
      ++sold;
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::jthread splits([&] {
      for (std::size_t i = 0; !over; ++i) {
        sellers[i % services].split("pen", std::array<std::size_t, 5>{4, 1, 8, 8, 2}[i % 5]);
        std::this_thread::sleep_for(5ms);
      }
    });
    for (int i = 0; i < services * callers; ++i) threads.emplace_back([&, i] { sell(i); });
    threads.clear();
    over = true;
  }
  EXPECT_THAT(refusedTooEarly, IsEmpty());
  EXPECT_EQ(sold, stocked);
  EXPECT_EQ(service.level("pen"), 0);
  expectBalance("pen", stocked);
  expectBalance("ink", stocked);
}

INSTANTIATE_TEST_SUITE_P(All, Split, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

/// On a server whose connections break.
class SplitFaults : public GroupFaults {
 protected:
  SplitFaults() {
    service.restock("pen", 1'000'000);
    service.split("pen", 3);
    splits.note("pen", 3);
  }

  Answers book(const std::string& name, inventory::Database& database) {
    std::array<inventory::PlacedOrder, 2> orders{
        inventory::PlacedOrder{.order = {"pen", 1, name + "a", ++attempts}},
        inventory::PlacedOrder{.order = {"pen", 2, name + "b", ++attempts}}};
    inventory::PlacedOrder* placed[] = {&orders[0], &orders[1]};
    inventory::GroupBooking(database, splits, placed, Instant::max()).run();
    Answers answers;
    for (const auto& each : orders) {
      answers.push_back(each.failure ? nameOf(each.failure) : toString(each.result));
    }
    return answers;
  }

  inventory::KnownSplits splits{systemRandom()};
  std::int64_t attempts = 0;
};

TEST_P(SplitFaults, EveryCutReplyToAGroupThatTakesFromABucketEndsInTheTruth) {
  endInTheTruth([&](const std::string& name, inventory::Database& database) { return book(name, database); },
                3,
                [&](const std::string& name) { return shop.booked(name + "a") && shop.booked(name + "b"); });
  EXPECT_EQ(shop.level("pen") + shop.sold("pen"), 1'000'000);
}

// Each time, the buckets are empty and all is in the article's row.
TEST_P(SplitFaults, CutRepliesToAGroupThatGathersEndInTheTruth) {
  const auto gather = [&](const std::string& name, inventory::Database& database) {
    watching << "UPDATE lockkeeper_stock SET version = version + 1, level = level + "
                "(SELECT SUM(level) FROM lockkeeper_buckets)",
        now;
    watching << "UPDATE lockkeeper_buckets SET level = 0", now;
    return book(name, database);
  };
  endInTheTruth(gather, 5,
                [&](const std::string& name) { return shop.booked(name + "a") && shop.booked(name + "b"); });
  EXPECT_EQ(shop.level("pen") + shop.sold("pen"), 1'000'000);
}

TEST_P(SplitFaults, CutRepliesToASplitEndInTheTruth) {
  StockService far(shop.uriBy(proxy.port()), shop.manager(), Way::conditionalUpdate, impatient);
  const auto split = [&](const std::string&, inventory::Database&) -> Answers {
    service.split("pen", 2);
    return {far.split("pen", 3) ? "split" : "unknown"};
  };
  endInTheTruth(split, 3, [&](const std::string&) {
    std::int64_t count = 0;
    watching << "SELECT COUNT(*) FROM lockkeeper_buckets", into(count), now;
    return count == 3 && shop.level("pen") == 1'000'000;
  });
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

TEST_P(SplitFaults, AGroupThatTakesFromABucketIsTwoRoundTrips) {
  book("connect", distant);
  proxy.passThrough();
  EXPECT_THAT(book("measure", distant), ::testing::ElementsAre("deducted", "deducted"));
  // The first request is not after a reply of this transaction.
  EXPECT_EQ(proxy.requests(), 2U);
}

// What a group of one bucket holds up is that bucket.
TEST_P(SplitFaults, AGroupThatStopsBeforeItsCommitHoldsUpNobodyElsesBucket) {
  splits.note("pen", 3);
  inventory::Database slow{shop.uriBy(proxy.port()), {.operationTimeout = std::chrono::seconds{20}}};
  book("connect", slow);
  proxy.set({.kind = ProxyFault::Kind::step, .requests = 1});
  auto stopped = std::async(std::launch::async, [&] { return book("stopped", slow); });
  EXPECT_TRUE(waitUntil([&] { return proxy.fired() > 0; }));
  watching << (GetParam() == Backend::postgres ? "SET lock_timeout = '1s'"
                                               : "SET SESSION innodb_lock_wait_timeout = 1"),
      now;
  int others = 0;
  for (int bucket = 0; bucket < 3; ++bucket) {
    try {
      watching
          << "UPDATE lockkeeper_buckets SET level = level WHERE sku = 'pen' AND buckets = 3 AND bucket = " +
                 std::to_string(bucket),
          now;
      ++others;
    } catch (const Poco::Exception&) {  // It waits too long.
    }
  }
  watching << "UPDATE lockkeeper_stock SET level = level WHERE sku = 'pen'", now;
  EXPECT_EQ(others, 2);
  proxy.passThrough();
  EXPECT_THAT(stopped.get(), ::testing::ElementsAre("deducted", "deducted"));
}

// Or a process that has the row and waits for the bucket would wait in a circle.
TEST_P(SplitFaults, GroupsThatTakeFromABucketDoNotNeedTheArticlesRow) {
  EXPECT_EQ(service.deduct("pen", 400'000, "finds out that it is split"), Deduction::deducted);
  Poco::Data::Session other = shop.session();
  other.setFeature("autoCommit", false);
  other << "UPDATE lockkeeper_stock SET version = version + 1", now;
  EXPECT_EQ(service.deduct("pen", 1, "order"), Deduction::deducted);
  EXPECT_EQ(service.reserve({{"pen", 1}}, 1h, "cart").state, ReservationState::held);
  EXPECT_EQ(service.level("pen"), 600'000 - 2);
  other.rollback();
}

/// With a setting that only MariaDB has: whoever locks a row that others have changed since he first read
/// fails, so he locks first.
class SplitUnderSnapshotIsolation : public SplitFaults {};

TEST_P(SplitUnderSnapshotIsolation, FindsTheLastPieces) {
  const DatabaseServer& mariadb = mysqlServerOf(GetParam());
  mariadb.execute("SET GLOBAL innodb_snapshot_isolation = ON");
  constexpr int callers = 8;
  constexpr int stocked = 400;
  service.restock("cap", stocked);
  service.restock("ink", stocked);
  service.split("cap", 5);
  std::atomic<int> held = 0;
  {
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < callers; ++caller) {
      threads.emplace_back([&, caller] {
        StockService stock = shop.service(Way::conditionalUpdate, {.operationTimeout = 20s});
        for (int cart = 0;; ++cart) {
          std::vector<inventory::CartLine> lines{{"cap", 1}};
          if (caller % 4 == 0) lines.push_back({"ink", 1});
          const std::string id = std::to_string(caller) + "-" + std::to_string(cart);
          if (stock.reserve(lines, 1h, id).state != ReservationState::held) return;
          ++held;
        }
      });
    }
  }
  mariadb.execute("SET GLOBAL innodb_snapshot_isolation = OFF");
  EXPECT_EQ(held, stocked);
  EXPECT_EQ(service.level("cap"), 0);
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, SplitFaults, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });

INSTANTIATE_TEST_SUITE_P(All, SplitUnderSnapshotIsolation, ::testing::Values(Backend::mariadb),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
