// Fills carts, pays for some, gives some up and leaves the others, with many threads, until it is killed.
// Arguments: the database's URI and this customer's number. Writes a line for each
// answer that is final: "confirmed ID", "cancelled ID" or "ordered ID".

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
#include "lockkeeper/memory/memory_driver.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::CartLine;
using inventory::CartRule;
using inventory::Deduction;
using inventory::ReservationState;
using inventory::StockService;
using inventory::Way;

constexpr unsigned threadCount = 6;
constexpr std::array<const char*, 4> skus{"pen", "ink", "cap", "pad"};

class Customer {
 public:
  Customer(StockService& stock, std::string name) : stock_(stock), name_(std::move(name)) {}

  [[noreturn]] void shop(unsigned thread) {
    std::mt19937 random(thread + 100 * static_cast<unsigned>(std::stoi(name_)));
    for (int number = 0;; ++number) {
      try {
        visit(random, name_ + "-" + std::to_string(thread) + "-" + std::to_string(number));
      } catch (const StoreUnavailable&) {
        std::this_thread::sleep_for(5ms);
      } catch (const OutcomeUnknown&) {
        std::this_thread::sleep_for(5ms);
      }
    }
  }

 private:
  void visit(std::mt19937& random, const std::string& id) {
    std::vector<CartLine> cart;
    const unsigned first = static_cast<unsigned>(random() % skus.size());
    for (unsigned i = 0; i <= random() % 3; ++i) cart.push_back({skus[(first + 3 * i) % skus.size()], 1});
    // Short ones end before many a decision on a slow machine.
    const auto ttl = std::chrono::milliseconds(random() % 2 == 0 ? 20 + random() % 100 : 2000);
    const CartRule rule = random() % 4 == 0 ? CartRule::part : CartRule::all;
    if (stock_.reserve(cart, ttl, id, rule).state != ReservationState::held) return;
    const auto decision = random() % 8;
    if (decision < 2 && stock_.confirm(id) == ReservationState::confirmed) tell("confirmed " + id);
    if (decision == 2 && stock_.cancel(id) == ReservationState::cancelled) tell("cancelled " + id);
    if (decision == 3) (void)stock_.extend(id, 2 * ttl);
    if (decision == 4 && stock_.deduct(skus[first], 1, id) == Deduction::deducted) tell("ordered " + id);
    if (decision == 5) (void)stock_.takeBack(name_ + "-0-1", skus[first], 1, id);
  }

  void tell(const std::string& line) {
    const std::lock_guard guard(mutex_);
    std::cout << line << std::endl;
  }

  StockService& stock_;
  const std::string name_;
  std::mutex mutex_;
};

int run(const std::string& database, const std::string& name) {
  LockManager locks(std::make_shared<MemoryDriver>());
  StockService stock(database, locks, Way::conditionalUpdate, {.sessions = threadCount});
  Customer customer(stock, name);
  std::vector<std::jthread> threads;
  for (unsigned thread = 0; thread < threadCount; ++thread) {
    threads.emplace_back([&, thread] { customer.shop(thread); });
  }
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  return count == 3 ? lockkeeper::test::run(arguments[1], arguments[2]) : 64;
}
