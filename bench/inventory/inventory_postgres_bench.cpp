// Orders and carts of one article through StockService on PostgreSQL, beside the same statements of the bare
// client library, in the same run on the same server, which flushes each commit.

#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "callers.h"
#include "line.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "postgres_server.h"

namespace lockkeeper {
namespace {

using bench::drive;
using bench::Result;
using inventory::Deduction;
using inventory::ReservationState;
using inventory::StockService;
using inventory::Way;

constexpr int manyCallers = 64;
constexpr int repetitions = 5;
constexpr bench::Seconds length{0.5};

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};

class PostgresBench {
 public:
  PostgresBench() {
    server_.execute("CREATE ROLE shop LOGIN PASSWORD 'shop'; ALTER DATABASE locks OWNER TO shop");
    service_ = std::make_unique<StockService>("postgres://shop:shop@127.0.0.1:" + port() + "/locks", locks_,
                                              Way::conditionalUpdate);
    service_->createSchema();
    for (int i = 0; i < 1000; ++i) service_->restock("pen", 1'000'000);
    for (int i = 0; i < manyCallers; ++i) {
      raw_.emplace_back(PQconnectdb(
          ("host=127.0.0.1 user=shop password=shop dbname=locks sslmode=disable port=" + port()).c_str()));
    }
  }

  void run() {
    compare(
        "orders", [this](int thread) { bareOrder(thread); },
        [this](int) {
          if (service_->deduct("pen", 1, nextId()) != Deduction::deducted) std::abort();
        });
    compare(
        "reservations", [this](int thread) { bareReservation(thread); },
        [this](int) {
          const auto state = service_->reserve({{"pen", 1}}, std::chrono::hours(1), nextId()).state;
          if (state != ReservationState::held) std::abort();
        });
  }

 private:
  using Call = std::function<void(int thread)>;

  std::string port() const { return std::to_string(server_.port()); }
  std::string nextId() { return "order-" + std::to_string(++ids_); }

  void ask(int thread, const std::string& statements) {
    PGconn* const connection = raw_[static_cast<std::size_t>(thread)].get();
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection, statements.c_str()),
                                                               PQclear);
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) {
      std::fputs(PQerrorMessage(connection), stderr);
      std::abort();
    }
  }
  static std::string update() {
    return "UPDATE lockkeeper_stock SET level = level - 1, version = version + 1 WHERE sku = 'pen' AND level "
           ">= 1;";
  }
  void bareOrder(int thread) {
    ask(thread, "BEGIN;INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES ('" +
                    nextId() + "','pen',1,1);" + update() + "COMMIT");
  }
  void bareReservation(int thread) {
    const std::string id = nextId();
    ask(thread,
        "BEGIN;" + update() +
            "INSERT INTO lockkeeper_reservations (reservation_id, line, sku, wanted, quantity, state, "
            "expires_at) VALUES ('" +
            id + "',0,'pen',1,1,'held',9000000000000);" +
            "INSERT INTO lockkeeper_changes (reason, id, sku, amount, attempt) VALUES ('reserve','" + id +
            "','pen',-1,1);COMMIT");
  }

  void compare(const std::string& what, const Call& bare, const Call& ours) {
    std::vector<double> ratios;
    for (int i = 0; i < repetitions; ++i) {
      const Result floor = drive(manyCallers, length, bare);
      const Result own = drive(manyCallers, length, ours);
      std::printf("%s: a bare batch %.0f/s, p99 %.2f ms; StockService %.0f/s, p99 %.2f ms\n", what.c_str(),
                  floor.perSecond, floor.p99 * 1e3, own.perSecond, own.p99 * 1e3);
      ratios.push_back(own.perSecond / floor.perSecond);
    }
    std::ranges::sort(ratios);
    const double median = ratios[ratios.size() / 2];
    bench::print({.name = "inventory, PostgreSQL: " + what + "/s, 64 callers, one article",
                  .floor = "a bare batch on 64 connections",
                  .wanted = "at least 4.00x",
                  .measured = bench::figure(median, "x"),
                  .passed = median >= 4});
  }

  test::PostgresServer server_{{"fsync=on", "autovacuum=on"}};
  LockManager locks_{std::make_shared<MemoryDriver>()};
  std::unique_ptr<StockService> service_;
  std::vector<std::unique_ptr<PGconn, Finish>> raw_;
  std::atomic<std::int64_t> ids_ = 0;
};

}  // namespace
}  // namespace lockkeeper

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  lockkeeper::PostgresBench().run();
  return 0;
}
