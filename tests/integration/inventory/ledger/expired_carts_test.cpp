// Very many carts that have expired and that nobody has swept: the first call that needs their goods gets
// them, and each goes back once.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/error.h"
#include "shop.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::CartLine;
using inventory::ReservationState;
using inventory::StockOptions;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;
using ::testing::IsEmpty;

class ExpiredCarts : public ::testing::TestWithParam<Backend> {
 protected:
  StockService service(std::chrono::seconds timeout) {
    return shop.service(Way::conditionalUpdate, {.operationTimeout = timeout});
  }

  /// To put back all that it needs takes longer than a transaction may, and perhaps longer than one call.
  void reserveInOneCallOrMore(const std::vector<CartLine>& cart) {
    constexpr int mostCalls = 100;
    StockService hasty = service(1s);
    ReservationState state = ReservationState::soldOut;
    for (int call = 1; call <= mostCalls && state != ReservationState::held; ++call) {
      try {
        state = hasty.reserve(cart, 10min, "all").state;
      } catch (const StoreUnavailable&) {  // What is back stays back.
      }
    }
    EXPECT_EQ(state, ReservationState::held);
  }

  /// All have gone back once, and are held again.
  void expectTaken(std::int64_t count) {
    std::int64_t expired = 0;
    shop.session() << "SELECT COUNT(*) FROM lockkeeper_changes WHERE reason = 'expire'", into(expired), now;
    EXPECT_EQ(expired, count);
    EXPECT_EQ(shop.level("pen"), 0);
    EXPECT_EQ(shop.reserved("pen"), count);
    EXPECT_THAT(patient.checkLedger(), IsEmpty());
  }

  Shop shop{GetParam()};
  StockService patient = service(1min);
};

TEST_P(ExpiredCarts, AreForSaleToACartThatNeedsAllOfThem) {
  const std::int64_t many = GetParam() == Backend::sqlite ? 2'000 : 60'000;
  patient.restock("pen", 0);
  shop.addExpired("pen", many);
  reserveInOneCallOrMore({{"pen", many}});
  expectTaken(many);
}

TEST_P(ExpiredCarts, AreForSaleToACartOfSeveralArticles) {
  const std::int64_t many = GetParam() == Backend::sqlite ? 2'000 : 30'000;
  patient.restock("pen", 0);
  patient.restock("ink", 1);
  shop.addExpired("pen", many);
  reserveInOneCallOrMore({{"ink", 1}, {"pen", many}});
  expectTaken(many);
}

TEST_P(ExpiredCarts, GoBackOnceWhenSeveralNeedThem) {
  const std::int64_t each = GetParam() == Backend::sqlite ? 200 : 700;
  patient.restock("pen", 0);
  patient.restock("ink", 10);
  shop.addExpired("pen", 3 * each);
  StockService other = service(1min);
  {
    std::vector<std::jthread> callers;
    callers.emplace_back([&] {
      EXPECT_EQ(patient.reserve({{"pen", each}}, 10min, "a").state, ReservationState::held);
    });
    callers.emplace_back([&] {
      EXPECT_EQ(other.reserve({{"pen", each}}, 10min, "b").state, ReservationState::held);
    });
    callers.emplace_back([&] {
      EXPECT_EQ(other.reserve({{"ink", 1}, {"pen", each}}, 10min, "c").state, ReservationState::held);
    });
    callers.emplace_back([&] { other.sweepExpired(); });
  }
  expectTaken(3 * each);
}

INSTANTIATE_TEST_SUITE_P(All, ExpiredCarts, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

class ExpiredCartsOnServers : public ExpiredCarts {};

using ExpiredCartsOfTwoBrands = ExpiredCartsOnServers;

TEST_P(ExpiredCartsOfTwoBrands, GoBackInPortionsThatAreCommitted) {
  patient.restock("pen", 0);
  shop.addExpired("pen", 1'000);
  const auto commits = [&] {
    std::string name, count;
    shop.session() << "SHOW GLOBAL STATUS LIKE 'Com_commit'", into(name), into(count), now;
    return std::stoi(count);
  };
  const int before = commits();
  EXPECT_EQ(patient.reserve({{"pen", 1'000}}, 10min, "all").state, ReservationState::held);
  EXPECT_EQ(commits() - before, 5);
  expectTaken(1'000);
}

TEST_P(ExpiredCartsOnServers, AreSweptAlsoWhenTheRowOfOneArticleStaysLocked) {
  for (const char* sku : {"cap", "ink", "pen"}) {
    patient.restock(sku, 0);
    shop.addExpired(sku, 3, sku);
  }
  Poco::Data::Session other = shop.session();
  other.begin();
  other << "UPDATE lockkeeper_stock SET version = version + 1 WHERE sku = 'ink'", now;
  EXPECT_THROW(service(1s).sweepExpired(), StoreUnavailable);
  other.rollback();
  EXPECT_EQ(shop.level("cap"), 3);
  EXPECT_EQ(shop.level("ink"), 0);
  EXPECT_EQ(shop.level("pen"), 3);
  EXPECT_EQ(patient.sweepExpired(), 3U);
}

INSTANTIATE_TEST_SUITE_P(All, ExpiredCartsOnServers, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });
INSTANTIATE_TEST_SUITE_P(All, ExpiredCartsOfTwoBrands, ::testing::ValuesIn(mysqlServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
