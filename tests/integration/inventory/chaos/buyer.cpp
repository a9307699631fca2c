// Buys until everything is sold out, with many threads, whatever happens to the database. Arguments: the
// way's number, the database's URI, the lock store's URI, this buyer's number, and the file for its ledger:
// one line for each order that it knows to be booked.

#include <array>
#include <chrono>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/store_registry.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::Deduction;
using inventory::StockService;
using inventory::Way;

constexpr int threadCount = 16;
constexpr std::array<const char*, 5> skus{"pen", "ink", "cap", "pad", "bag"};
constexpr int longestThought = 400;  // ms between two orders

class Buyer {
 public:
  Buyer(StockService& stock, std::string name) : stock_(stock), name_(std::move(name)) {}

  /// Returns when all is sold out.
  void buyAll(int thread) {
    std::mt19937 random(static_cast<unsigned>(std::stoi(name_) * threadCount + thread));
    std::vector<std::string> open(skus.begin(), skus.end());
    for (int number = 0; !open.empty(); ++number) {
      const std::size_t choice = random() % open.size();
      const std::string id = name_ + "-" + std::to_string(thread) + "-" + std::to_string(number);
      if (buy(open[choice], id)) {
        const std::lock_guard guard(mutex_);
        ledger_ += id + " " + open[choice] + "\n";
      } else {
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(choice));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % longestThought));
    }
  }

  const std::string& ledger() const { return ledger_; }
  bool contradicted() const { return contradicted_; }

 private:
  /// Asks until the order's fate is known; false when it is sold out.
  bool buy(const std::string& sku, const std::string& id) {
    for (bool mayBeBooked = false;;) {
      try {
        switch (stock_.deduct(sku, 1, id)) {
          case Deduction::deducted:
            return true;
          case Deduction::duplicate:
            if (!mayBeBooked) contradict(id + " is a duplicate, and nobody else ordered it");
            return true;
          case Deduction::soldOut:
            return false;
          case Deduction::unknownSku:
            contradict(sku + " is unknown");
            return false;
          case Deduction::busy:
          case Deduction::conflict:
            break;
        }
      } catch (const StoreUnavailable&) {  // Certainly not booked.
        std::this_thread::sleep_for(20ms);
      } catch (const OutcomeUnknown&) {
        mayBeBooked = true;
        std::this_thread::sleep_for(20ms);
      }
    }
  }

  void contradict(const std::string& what) {
    const std::lock_guard guard(mutex_);
    std::cerr << what << "\n";
    contradicted_ = true;
  }

  StockService& stock_;
  const std::string name_;
  std::mutex mutex_;
  std::string ledger_;
  bool contradicted_ = false;
};

int run(Way way, const std::string& database, const std::string& store, const std::string& name,
        const std::string& ledgerFile) {
  StoreRegistry registry;
  mysql::use(registry);
  postgres::use(registry);
  LockManager locks(registry.open(store));
  StockService stock(database, locks, way, {.lockTtl = 1s, .lockWait = 5s, .sessions = threadCount});
  Buyer buyer(stock, name);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < threadCount; ++thread) {
      threads.emplace_back([&, thread] { buyer.buyAll(thread); });
    }
  }
  writeFile(ledgerFile, buyer.ledger());
  return buyer.contradicted() ? 1 : 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count != 6) return 64;
  const auto way = static_cast<lockkeeper::inventory::Way>(std::stoi(arguments[1]));
  return lockkeeper::test::run(way, arguments[2], arguments[3], arguments[4], arguments[5]);
}
