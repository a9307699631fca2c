// A whole sale while sessions are killed, the server dies once, and a buyer sleeps past its lock's ttl. In
// the end the books must balance.

#include <Poco/Data/RecordSet.h>
#include <Poco/Data/Statement.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <tuple>

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

constexpr int buyers = 4;
constexpr std::int64_t stockOfEach = 200;
constexpr const char* skus[] = {"pen", "ink", "cap", "pad", "bag"};
constexpr std::int64_t stock = stockOfEach * std::size(skus);
constexpr auto pastTheTtl = 1500ms;  // the buyers' locks live for 1 s
constexpr int leastKilled = 10;

std::vector<std::string> onlyIn(const std::set<std::string>& these, const std::set<std::string>& others) {
  std::vector<std::string> difference;
  std::ranges::set_difference(these, others, std::back_inserter(difference));
  return difference;
}

class Chaos : public ::testing::TestWithParam<std::tuple<Backend, Way>> {
 protected:
  Chaos() {
    StockService service = shop.service(Way::conditionalUpdate);
    for (const char* sku : skus) service.restock(sku, stockOfEach);
    // Each of these in buckets, and the others not.
    if (way != Way::conditionalUpdate) return;
    service.split("pen", 3);
    service.split("ink", 8);
  }

  bool isPostgres() const { return shop.backend() == Backend::postgres; }

  void startBuyers() {
    const std::string& uri = shop.uri();
    const std::string store =
        uri.substr(0, uri.find("://")) + "+version" + uri.substr(uri.find("://")) + "?createTable=true";
    for (int i = 0; i < buyers; ++i) {
      const std::string name = std::to_string(i);
      running.push_back(std::make_unique<Process>(
          std::vector<std::string>{BUYER, std::to_string(static_cast<int>(way)), shop.uri(), store, name,
                                   folder / ("ledger" + name)},
          ProcessOptions{.standardError = folder / ("errors" + name)}));
    }
  }

  static std::int64_t sold(Poco::Data::Session& session) {
    std::int64_t count = 0;
    session << "SELECT COUNT(*) FROM lockkeeper_orders", into(count), now;
    return count;
  }

  /// Kills a session of the buyers, one at work if there is one just now.
  void killOne(Poco::Data::Session& session) {
    std::int64_t id = 0;
    Poco::Data::Statement select(session);
    select << (isPostgres()
                   ? "SELECT pid FROM pg_stat_activity WHERE usename = 'shop' ORDER BY state = 'idle', "
                     "random() LIMIT 1"
                   : "SELECT id FROM information_schema.processlist WHERE user = 'shop' ORDER BY command = "
                     "'Sleep', RAND() LIMIT 1"),
        into(id);
    if (select.execute() == 0) return;
    try {
      const std::string number = std::to_string(id);
      session << (isPostgres() ? "DO $$BEGIN PERFORM pg_terminate_backend(" + number + "); END$$"
                               : "KILL " + number),
          now;
      ++killed;
    } catch (const Poco::Exception&) {  // It has ended by itself.
    }
  }

  void killUntilSold(std::int64_t count) {
    Poco::Data::Session session = shop.session();
    EXPECT_TRUE(waitUntil(
        [&] {
          killOne(session);
          return sold(session) >= count;
        },
        100s))
        << sold(session) << " sold";
  }

  /// Whether the process holds a lock now, and will for long enough to notice.
  bool holdsALock(const Process& process) const {
    std::int64_t count = 0;
    Poco::Data::Session session = shop.session();
    session << std::string("SELECT COUNT(*) FROM lockkeeper_locks WHERE token <> '' AND expires_at > ") +
                   (isPostgres() ? "clock_timestamp()" : "UTC_TIMESTAMP(6)") +
                   " AND owner LIKE '%:" + std::to_string(process.pid()) + "'",
        into(count), now;
    return count > 0;
  }

  /// Until it has been caught with a lock, where this way locks; then lets it sleep past the lock's end.
  void stopOnePastItsTtl() {
    const Process& sleeper = *running.front();
    const bool locks = way != Way::conditionalUpdate && way != Way::optimistic;
    const bool caught = waitUntil([&] {
      sleeper.pause();
      if (!locks || holdsALock(sleeper)) return true;
      sleeper.resume();
      return false;
    });
    EXPECT_TRUE(caught) << "the buyer was never seen with a lock";
    std::this_thread::sleep_for(pastTheTtl);
    EXPECT_FALSE(locks && holdsALock(sleeper));
    sleeper.resume();
    ++stopped;
  }

  void restart() {
    serverOf(shop.backend()).restart();
    ++restarted;
  }

  /// Lets the buyers buy the rest.
  void finish() {
    killUntilSold(stock);
    for (int i = 0; i < buyers; ++i) {
      EXPECT_EQ(running[static_cast<std::size_t>(i)]->waitFor(100s), 0)
          << readFile(folder / ("errors" + std::to_string(i)));
    }
    expectBalancedBooks();
    RecordProperty("killed", killed);
  }

  void expectBalancedBooks() const {
    std::set<std::string> ledger;
    for (int i = 0; i < buyers; ++i) {
      std::istringstream lines(readFile(folder / ("ledger" + std::to_string(i))));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(ledger.insert(line).second) << line << " was booked twice";
      }
    }
    std::set<std::string> rows;
    Poco::Data::Session session = shop.session();
    const Poco::Data::RecordSet all(session, "SELECT CONCAT(" + shop.textOf("order_id") + ", ' ', " +
                                                 shop.textOf("sku") + ") FROM lockkeeper_orders");
    for (std::size_t i = 0; i < all.rowCount(); ++i) rows.insert(all.value(0, i).convert<std::string>());
    EXPECT_EQ(onlyIn(ledger, rows), std::vector<std::string>())
        << "the buyers were told so, and it is not there";
    EXPECT_EQ(onlyIn(rows, ledger), std::vector<std::string>()) << "it is there, and no buyer was told so";
    for (const char* sku : skus) {
      EXPECT_EQ(shop.level(sku), 0) << sku;
      EXPECT_EQ(shop.sold(sku), stockOfEach) << sku;
      EXPECT_EQ(shop.ledger(sku), 0) << sku;
    }
  }

  Shop shop{std::get<Backend>(GetParam())};
  const Way way = std::get<Way>(GetParam());
  TempFolder folder;
  std::vector<std::unique_ptr<Process>> running;
  int killed = 0;
  int stopped = 0;
  int restarted = 0;
};

TEST_P(Chaos, TheBooksBalance) {
  startBuyers();
  killUntilSold(stock / 5);
  stopOnePastItsTtl();
  killUntilSold(stock / 2);
  restart();
  finish();
  EXPECT_GE(killed, leastKilled);
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(restarted, 1);
}

INSTANTIATE_TEST_SUITE_P(All, Chaos,
                         ::testing::Combine(::testing::ValuesIn(allServers), ::testing::ValuesIn(allWays)),
                         [](const auto& each) {
                           return nameOf(std::get<Backend>(each.param)) + nameOf(std::get<Way>(each.param));
                         });

/// Whose connection breaks at COMMIT asks what has become of it, and a server answers before it has flushed
/// the commit: here it dies at this very moment, again and again.
class ChaosOfCrashes : public Chaos {};

TEST_P(ChaosOfCrashes, WhatWasToldOnceIsSoAfterwards) {
  constexpr int crashes = 6;
  constexpr int killedBeforeEach = 12;
  startBuyers();
  for (int crash = 1; crash <= crashes; ++crash) {
    killUntilSold(stock * crash / (crashes + 2));
    Poco::Data::Session session = shop.session();
    for (int i = 0; i < killedBeforeEach; ++i) killOne(session);
    restart();
  }
  finish();
  EXPECT_EQ(restarted, crashes);
}

INSTANTIATE_TEST_SUITE_P(All, ChaosOfCrashes,
                         ::testing::Combine(::testing::ValuesIn(allServers),
                                            ::testing::Values(Way::conditionalUpdate, Way::optimistic)),
                         [](const auto& each) {
                           return nameOf(std::get<Backend>(each.param)) + nameOf(std::get<Way>(each.param));
                         });

}  // namespace
}  // namespace lockkeeper::test
