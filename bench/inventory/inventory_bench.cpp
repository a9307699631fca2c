// Orders and reservations of one article through StockService, beside the same statements of the bare client
// library, in the same run on the same server, which flushes each commit.
// usage: inventory_bench
//        inventory_bench --sell URI BEGIN SECONDS  what the sellers do that it starts

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "brand.h"
#include "callers.h"
#include "database_server.h"
#include "fault_proxy.h"
#include "line.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/mysql/server_rows.h"
#include "mysql/raw_session.h"
#include "process.h"
#include "temp_folder.h"

namespace lockkeeper {
namespace {

using bench::drive;
using bench::Result;
using bench::Seconds;
using inventory::Deduction;
using inventory::StockService;
using inventory::Way;

constexpr int manyCallers = 64;
constexpr int repetitions = 5;
constexpr int sellers = 4;  // processes
constexpr int callersOfSeller = 16;
constexpr std::size_t buckets = 8;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double sinceBoot() { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Sells caps from `begin` on, and prints how many orders it got in a second.
void sell(const std::string& uri, double begin, Seconds length) {
  LockManager locks(std::make_shared<MemoryDriver>());
  StockService service(uri, locks, Way::conditionalUpdate);
  const std::string name = std::to_string(getpid()) + "-";
  std::atomic<std::int64_t> orders = 0;
  const auto order = [&](int) {
    if (service.deduct("cap", 1, name + std::to_string(++orders)) != Deduction::deducted) std::abort();
  };
  order(0);  // It connects, and finds out whether the article is split.
  std::this_thread::sleep_for(Seconds(begin - sinceBoot()));
  std::printf("%f\n", drive(callersOfSeller, length, order).perSecond);
}

class InventoryBench {
 public:
  InventoryBench(test::Brand brand, Seconds length)
      : brand_(brand), length_(length), server_(brand, {"--innodb-flush-log-at-trx-commit=1"}) {
    service_.createSchema();
    for (int i = 0; i < 1000; ++i) service_.restock("pen", 1'000'000);
    for (int i = 0; i < manyCallers; ++i) {
      raw_.push_back(std::make_unique<bench::RawSession>(server_.port(), database_));
    }
  }

  void run() {
    many();
    reservations();
    refusedReservations();
    one();
    statements();
    processes(std::chrono::milliseconds(0));
    processes(std::chrono::milliseconds(1));
  }

 private:
  std::string nextId() { return "order-" + std::to_string(++orders_); }

  static std::string insert(const std::string& id) {
    return "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES ('" + id + "','pen',1,1)";
  }
  static std::string update() {
    return "UPDATE lockkeeper_stock SET level = level - 1, version = version + 1 WHERE sku = 'pen' AND level "
           ">= 1";
  }

  void bareBatch(int thread) {
    raw_[static_cast<std::size_t>(thread)]->ask("START TRANSACTION;" + insert(nextId()) + ";" + update() +
                                                ";COMMIT");
  }

  void bareReservation(int thread) {
    const std::string id = nextId();
    raw_[static_cast<std::size_t>(thread)]->ask(
        "START TRANSACTION;" + update() +
        ";INSERT INTO lockkeeper_reservations (reservation_id, line, sku, wanted, quantity, state, "
        "expires_at) VALUES ('" +
        id + "',0,'pen',1,1,'held',9000000000000);" +
        "INSERT INTO lockkeeper_changes (reason, id, sku, amount, attempt) VALUES ('reserve','" + id +
        "','pen',-1,1);COMMIT");
  }

  // As orders were sent before they were combined.
  void oneByOne(int) {
    mysql::ServerRows::Transaction transaction = rows_.begin();
    transaction.execute(
        "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES (?, ?, ?, ?) "
        "ON DUPLICATE KEY UPDATE attempt = lockkeeper_orders.attempt",
        {nextId(), "pen", std::int64_t{1}, std::int64_t{1}});
    transaction.execute(
        "UPDATE lockkeeper_stock SET level = level - ?, version = version + 1 WHERE sku = ? AND level >= ?",
        {std::int64_t{1}, "pen", std::int64_t{1}});
    transaction.commit();
  }

  void order(int) {
    if (service_.deduct("pen", 1, nextId()) != Deduction::deducted) std::abort();
  }

  void reserve(int) {
    const auto state = service_.reserve({{"pen", 1}}, std::chrono::hours(1), nextId()).state;
    if (state != inventory::ReservationState::held) std::abort();
  }

  /// Two ways in turn, again and again: the ratios of the second one's results to the first one's.
  struct Ratios {
    double perSecond;
    double half;  // Of the best ones: with one caller, the rest is what else the machine does.
    double p99;
  };
  Ratios compare(int threads, void (InventoryBench::*floor)(int), const char* name,
                 void (InventoryBench::*ours)(int)) {
    std::vector<double> perSecond, p99;
    double best = 1, bestFloor = 1;
    for (int i = 0; i < repetitions; ++i) {
      const Result bare = drive(threads, length_, [&](int thread) { (this->*floor)(thread); });
      const Result own = drive(threads, length_, [&](int thread) { (this->*ours)(thread); });
      std::printf(
          "%s, %d callers: %s %.0f/s, half %.3f ms, p99 %.2f ms; StockService %.0f/s, half %.3f ms, p99 %.2f "
          "ms\n",
          bench::inWords(brand_), threads, name, bare.perSecond, bare.half * 1e3, bare.p99 * 1e3,
          own.perSecond, own.half * 1e3, own.p99 * 1e3);
      perSecond.push_back(own.perSecond / bare.perSecond);
      best = std::min(best, own.half);
      bestFloor = std::min(bestFloor, bare.half);
      p99.push_back(own.p99 / bare.p99);
    }
    return {median(perSecond), best / bestFloor, median(p99)};
  }

  void print(const std::string& what, const std::string& floor, const std::string& wanted,
             const std::string& measured, bool passed) const {
    bench::print({.name = std::string("inventory, ") + bench::inWords(brand_) + ": " + what,
                  .floor = floor,
                  .wanted = wanted,
                  .measured = measured,
                  .passed = passed});
  }

  void many() {
    const Ratios ratios =
        compare(manyCallers, &InventoryBench::bareBatch, "a bare batch", &InventoryBench::order);
    const std::string floor = "a bare batch on 64 connections";
    print("orders/s, 64 callers, one article", floor, "at least 4.00x", bench::figure(ratios.perSecond, "x"),
          ratios.perSecond >= 4);
    print("p99, 64 callers, one article", floor, "at most 1.00x", bench::figure(ratios.p99, "x"),
          ratios.p99 <= 1);
  }

  void reservations() {
    const Ratios ratios =
        compare(manyCallers, &InventoryBench::bareReservation, "a bare batch", &InventoryBench::reserve);
    print("reservations/s, 64 callers, one article", "a bare batch on 64 connections", "at least 4.00x",
          bench::figure(ratios.perSecond, "x"), ratios.perSecond >= 4);
  }

  void refuse(int) {
    const auto state = service_.reserve({{"cap", 2}}, std::chrono::hours(1), nextId()).state;
    if (state != inventory::ReservationState::soldOut) std::abort();
  }

  void refusedReservations() {
    service_.restock("cap", 1);
    const Ratios ratios = compare(manyCallers, &InventoryBench::reserve, "held", &InventoryBench::refuse);
    print("refused reservations/s, 64 callers, too little of one article", "reservations that are held",
          "at least 0.60x", bench::figure(ratios.perSecond, "x"), ratios.perSecond >= 0.6);
  }

  void one() {
    const Ratios ratios =
        compare(1, &InventoryBench::oneByOne, "statements one by one", &InventoryBench::order);
    print("time of half of the orders, 1 caller", "insert, update and commit one by one, on ServerRows",
          "at most 1.05x", bench::figure(ratios.half, "x"), ratios.half <= 1.05);
  }

  double statementsSoFar() { return std::stod(raw_[0]->ask("SHOW GLOBAL STATUS LIKE 'Questions'", 1)); }

  void statements() {
    const double before = statementsSoFar();
    std::atomic<int> orders = 0;
    drive(manyCallers, length_, [&](int thread) {
      order(thread);
      ++orders;
    });
    const double each = (statementsSoFar() - before) / orders;
    print("statements an order, 64 callers", "", "at most 0.20", bench::figure(each, ""), each <= 0.2);
  }

  /// Orders/s of all sellers together.
  double sellTogether(const std::string& uri) {
    // Long enough for all of them to start.
    const double begin = sinceBoot() + 1;
    const test::TempFolder folder;
    std::vector<test::Process> processes;
    for (int i = 0; i < sellers; ++i) {
      processes.emplace_back(std::vector<std::string>{"/proc/self/exe", "--sell", uri, std::to_string(begin),
                                                      std::to_string(length_.count())},
                             test::ProcessOptions{.standardOutput = folder / std::to_string(i)});
    }
    double sum = 0;
    for (int i = 0; i < sellers; ++i) {
      if (processes[static_cast<std::size_t>(i)].waitFor(std::chrono::minutes(1)) != 0) std::abort();
      sum += std::stod(test::readFile(folder / std::to_string(i)));
    }
    return sum;
  }

  /// Sellers so far away that each answer takes so much longer.
  void processes(std::chrono::milliseconds away) {
    test::FaultProxy proxy(server_.port());
    proxy.set({.kind = test::ProxyFault::Kind::delay, .pause = away});
    const bool near = away.count() == 0;
    const std::string uri =
        near ? server_.uri(database_) : test::DatabaseServer::uri(database_, proxy.port());
    std::vector<double> ratios;
    for (int i = 0; i < 100; ++i) service_.restock("cap", 1'000'000);
    for (int i = 0; i < repetitions; ++i) {
      service_.split("cap", 1);
      const double whole = sellTogether(uri);
      service_.split("cap", buckets);
      const double split = sellTogether(uri);
      std::printf("%s, %d processes of %d callers, %d ms away: in one row %.0f/s, in %zu buckets %.0f/s\n",
                  bench::inWords(brand_), sellers, callersOfSeller, static_cast<int>(away.count()), whole,
                  buckets, split);
      ratios.push_back(split / whole);
    }
    const double ratio = median(ratios);
    const std::string where = near ? "on this machine" : std::to_string(away.count()) + " ms away";
    print("orders/s, 4 processes of 16 callers " + where + ", one article in 8 buckets",
          "the same in one row", "at least 1.00x", bench::figure(ratio, "x"), ratio >= 1);
  }

  const test::Brand brand_;
  const Seconds length_;
  test::DatabaseServer server_;
  const std::string database_ = server_.newDatabase();
  LockManager locks_{std::make_shared<MemoryDriver>()};
  StockService service_{server_.uri(database_), locks_, Way::conditionalUpdate};
  mysql::ServerRows rows_{StoreUri::parse(server_.uri(database_)), {}};
  std::vector<std::unique_ptr<bench::RawSession>> raw_{};
  std::atomic<std::int64_t> orders_ = 0;
};

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (count == 5 && arguments[1] == std::string("--sell")) {
    lockkeeper::sell(arguments[2], std::stod(arguments[3]), lockkeeper::Seconds(std::stod(arguments[4])));
    return 0;
  }
  for (const lockkeeper::test::Brand brand : lockkeeper::test::allBrands) {
    lockkeeper::InventoryBench(brand, lockkeeper::Seconds(0.5)).run();
  }
  return 0;
}
