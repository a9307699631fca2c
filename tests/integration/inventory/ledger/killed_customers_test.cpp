// Processes with carts are killed at random, and the server with them, again and again: nothing is lost, and
// nothing sold twice. LOCKKEEPER_CHAOS_SECONDS: for how long on each database; 6 by default.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "chosen_seed.h"
#include "process.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

constexpr std::size_t customersAtOnce = 2;
constexpr std::int64_t restocked = 50;
constexpr std::array skusInCarts{"pen", "ink", "cap", "pad"};

std::chrono::seconds length() {
  const char* const given = std::getenv("LOCKKEEPER_CHAOS_SECONDS");
  return given != nullptr ? std::chrono::seconds(std::stoi(given)) : 6s;
}

class KilledCustomers : public ::testing::TestWithParam<Backend> {
 protected:
  /// By a session of its own: the server may have died since.
  std::int64_t count(const std::string& rows) const {
    std::int64_t found = 0;
    Poco::Data::Session reading = shop.session();
    reading << "SELECT COUNT(*) FROM lockkeeper_" + rows, into(found), now;
    return found;
  }
  std::int64_t carts() const { return count("reservations WHERE line = 0"); }

  void start(std::size_t place) {
    const std::string name = std::to_string(10 + started++);
    outputs.push_back((folder / name).string());
    customers[place] = std::make_unique<Process>(std::vector<std::string>{CUSTOMER, shop.uri(), name},
                                                 ProcessOptions{.standardOutput = outputs.back()});
  }

  void kill(std::size_t place) {
    customers[place]->signal(SIGKILL);
    EXPECT_EQ(customers[place]->waitFor(20s), 128 + SIGKILL);
    ++killed;
  }

  /// So that it goes on for as long as the test does. Two of the articles are split anew each time.
  void restock() {
    const std::string id = std::to_string(restocks++);
    for (const char* sku : skusInCarts) service.restock(sku, restocked, sku + id);
    for (const char* sku : {"pen", "ink"}) service.split(sku, static_cast<std::size_t>(1 + restocks % 3));
  }

  void expectWhatWasTold() const {
    const std::map<std::string, std::string> rows{
        {"confirmed", "reservations WHERE state = 'confirmed' AND reservation_id = '"},
        {"cancelled", "reservations WHERE state = 'cancelled' AND reservation_id = '"},
        {"ordered", "orders WHERE order_id = '"}};
    std::map<std::string, int> told;
    for (const std::string& output : outputs) {
      std::istringstream lines(readFile(output));
      for (std::string what, id; lines >> what >> id; ++told[what]) {
        // Of a line that was being written when its customer was killed, the end is missing.
        if (lines.eof()) break;
        EXPECT_GT(count(rows.at(what) + id + "'"), 0) << id << " was told to be " << what;
      }
    }
    EXPECT_THAT(told, ::testing::SizeIs(rows.size())) << "something was never told";
  }

  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, {.operationTimeout = 10s});
  TempFolder folder;
  std::array<std::unique_ptr<Process>, customersAtOnce> customers;
  std::vector<std::string> outputs;
  int started = 0;
  int restocks = 0;
  int killed = 0;
  int crashed = 0;
};

TEST_P(KilledCustomers, LeaveBooksThatBalance) {
  constexpr std::int64_t cartsBetween = 20;
  constexpr int customersForServer = 4;
  const unsigned seed = chosenSeed();
  SCOPED_TRACE("LOCKKEEPER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  restock();
  for (std::size_t place = 0; place < customersAtOnce; ++place) start(place);
  const auto end = std::chrono::steady_clock::now() + length();
  const bool hasServer = shop.backend() != Backend::sqlite;
  while ((std::chrono::steady_clock::now() < end || (hasServer && crashed == 0)) && !HasFailure()) {
    const std::int64_t enough = carts() + cartsBetween + static_cast<std::int64_t>(random() % cartsBetween);
    EXPECT_TRUE(waitUntil([&] { return carts() >= enough; }, 60s)) << "nobody shops any more";
    const bool server = hasServer && (killed + crashed) % customersForServer == customersForServer - 1;
    const std::size_t place = random() % customersAtOnce;
    if (server) {
      serverOf(shop.backend()).restart();
      ++crashed;
    } else {
      kill(place);
      start(place);
    }
    restock();
  }
  for (std::size_t place = 0; place < customersAtOnce; ++place) kill(place);
  EXPECT_TRUE(waitUntil([&] {
    (void)service.sweepExpired();
    return count("reservations WHERE state = 'held'") == 0;
  }));
  RecordProperty("killed", killed);
  RecordProperty("crashed", crashed);
  RecordProperty("carts", std::to_string(carts()));
  EXPECT_GT(count("reservations WHERE state = 'expired'"), 0);
  expectWhatWasTold();
  EXPECT_THAT(service.checkLedger(), ::testing::IsEmpty());
  for (const char* sku : skusInCarts) {
    EXPECT_EQ(shop.ledger(sku), shop.level(sku)) << sku;
    EXPECT_EQ(shop.level(sku) + shop.sold(sku) + shop.reserved(sku) - shop.returned(sku),
              restocks * restocked)
        << sku;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KilledCustomers, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
