// Processes are killed in the midst of carts, again and again: nothing is lost, and nothing sold twice.

#include <Poco/Data/Statement.h>

#include <array>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "process.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

constexpr int rounds = 5;
constexpr int customersAtOnce = 2;
constexpr std::int64_t cartsOfRound = 100;
constexpr std::int64_t stocked = 150;
constexpr std::array skus{"pen", "ink", "cap", "pad"};

class KilledCustomers : public testing::TestWithParam<Backend> {
 protected:
  std::int64_t count(const std::string& condition) {
    std::int64_t found = 0;
    reading << "SELECT COUNT(*) FROM lockkeeper_reservations WHERE " + condition, into(found), now;
    return found;
  }

  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate);
  Poco::Data::Session reading = shop.session();
  TempFolder folder;
};

TEST_P(KilledCustomers, LeaveBooksThatBalance) {
  for (const char* sku : skus) service.restock(sku, stocked, sku);
  std::vector<std::string> outputs;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t enough = count("line = 0") + cartsOfRound;
    std::vector<std::unique_ptr<Process>> customers;
    for (int i = 0; i < customersAtOnce; ++i) {
      const std::string name = std::to_string(10 + customersAtOnce * round + i);
      outputs.push_back((folder / name).string());
      customers.push_back(std::make_unique<Process>(std::vector<std::string>{CUSTOMER, shop.uri(), name},
                                                    ProcessOptions{.standardOutput = outputs.back()}));
    }
    EXPECT_TRUE(waitUntil([&] { return count("line = 0") >= enough; }, std::chrono::seconds{60}));
    for (const auto& each : customers) each->signal(SIGKILL);
    for (const auto& each : customers) EXPECT_EQ(each->waitFor(std::chrono::seconds{20}), 128 + SIGKILL);
  }
  EXPECT_TRUE(waitUntil([&] {
    (void)service.sweepExpired();
    return count("state = 'held'") == 0;
  }));
  EXPECT_GT(count("state = 'expired'"), 0);
  EXPECT_GT(count("state = 'cancelled'"), 0);
  std::int64_t paid = 0;
  for (const std::string& output : outputs) {
    std::istringstream lines(readFile(output));
    for (std::string id; std::getline(lines, id); ++paid) {
      EXPECT_GT(count("state = 'confirmed' AND reservation_id = '" + id + "'"), 0) << id << " was told so";
    }
  }
  EXPECT_GT(paid, 0);
  EXPECT_TRUE(service.checkLedger().empty());
  for (const char* sku : skus) {
    EXPECT_EQ(shop.ledger(sku), shop.level(sku)) << sku;
    EXPECT_EQ(shop.level(sku) + shop.sold(sku) + shop.reserved(sku) - shop.returned(sku), stocked) << sku;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KilledCustomers, testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
