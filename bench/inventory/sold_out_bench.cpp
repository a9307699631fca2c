// Refusals of an article that is sold out, through StockService.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "brand.h"
#include "callers.h"
#include "database_server.h"
#include "line.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "mysql/raw_session.h"

namespace lockkeeper {
namespace {

using bench::drive;
using bench::Result;
using bench::Seconds;
using inventory::Deduction;
using inventory::StockService;
using inventory::Way;

constexpr int manyCallers = 64;
constexpr int million = 1'000'000;

class SoldOutBench {
 public:
  SoldOutBench(test::Brand brand, Seconds length) : brand_(brand), length_(length), server_(brand) {
    service_.createSchema();
    service_.restock("pen", 1);
  }

  void run() {
    fewOrders();
    manyOrders();
  }

 private:
  void print(const std::string& what, const std::string& wanted, double measured, const char* unit,
             bool passed) const {
    bench::print({.name = std::string("sold out, ") + bench::inWords(brand_) + ": " + what,
                  .floor = "",
                  .wanted = wanted,
                  .measured = bench::figure(measured, unit),
                  .passed = passed});
  }

  void refuse(const std::string& sku) {
    if (service_.deduct(sku, 1, "order-" + std::to_string(++orders_)) != Deduction::soldOut) std::abort();
  }

  void fewOrders() {
    service_.restock("ink", 0);
    const Result refused = drive(manyCallers, length_, [&](int) { refuse("ink"); });
    print("refused orders/s, 64 callers", "at least 200000", refused.perSecond, "",
          refused.perSecond >= 200'000);
  }

  void addMillionOrders() {
    std::string ten = "(SELECT 0 AS d";
    for (int digit = 1; digit < 10; ++digit) ten += " UNION ALL SELECT " + std::to_string(digit);
    std::string digits = ten + ") AS t0";
    std::string number = "t0.d";
    for (const std::string place : {"1", "2", "3", "4", "5"}) {
      digits += ", " + ten + ") AS t" + place;
      number += " + 1" + std::string(std::stoul(place), '0') + " * t" + place + ".d";
    }
    bench::RawSession(server_.port(), database_)
        .ask(
            "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt, written_at) SELECT "
            "CONCAT('million-', " +
            number + "), 'cup', 1, 1, " + number + " FROM " + digits);
  }

  /// From the first refusal on.
  Result refuseCups(double perSecond) {
    service_.restock("cup", 0);  // What is known of its orders counts no more.
    return drive(
        manyCallers, std::max(length_, Seconds(10)), [&](int) { refuse("cup"); }, perSecond);
  }

  /// While another article is restocked.
  void manyOrders() {
    constexpr std::chrono::milliseconds pause{77};  // 13 a second
    const std::string when = ", a million orders of the article, 13 restocks/s of another one, 64 callers";
    service_.restock("cup", 0);
    addMillionOrders();
    const std::jthread restocks([&](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(pause)) service_.restock("pen", 1);
    });
    const Result fastest = refuseCups(std::numeric_limits<double>::infinity());
    print("refused orders/s" + when, "at least 100000", fastest.perSecond, "", fastest.perSecond >= 100'000);
    // At full speed, so many threads wait longer than that for a processor.
    const Result paced = refuseCups(120'000);
    print("refused orders/s of 120000 offered" + when, "at least 100000", paced.perSecond, "",
          paced.perSecond >= 100'000);
    print("longest refusal of 120000/s offered" + when, "at most 100 ms", paced.longest * 1e3, " ms",
          paced.longest <= 0.1);
    for (int number = 0; number < million; number += 50'021) {
      const std::string booked = "million-" + std::to_string(number);
      if (service_.deduct("cup", 1, booked) != Deduction::duplicate) std::abort();
    }
  }

  const test::Brand brand_;
  const Seconds length_;
  test::DatabaseServer server_;
  const std::string database_ = server_.newDatabase();
  LockManager locks_{std::make_shared<MemoryDriver>()};
  StockService service_{server_.uri(database_), locks_, Way::conditionalUpdate};
  std::atomic<std::int64_t> orders_ = 0;
};

}  // namespace
}  // namespace lockkeeper

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const lockkeeper::test::Brand brand : lockkeeper::test::allBrands) {
    lockkeeper::SoldOutBench(brand, lockkeeper::bench::Seconds(1)).run();
  }
  return 0;
}
