// How cost grows with rows on MariaDB and on PostgreSQL: of locks, on MariaDB of fences, and of orders that
// were booked. What is beside ten million rows and what is beside none are on the same server.

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "contest.h"
#include "database_server.h"
#include "line.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"

namespace lockkeeper {
namespace {

constexpr int million = 1'000'000;
constexpr int millions = 10;
// What is said to cost the same with many as with none.
constexpr double theSame = 1.25;

/// One database with ten million rows, and one without, on the same server.
class Databases {
 public:
  Databases() = default;
  Databases(const Databases&) = delete;
  Databases& operator=(const Databases&) = delete;
  virtual ~Databases() = default;

  virtual std::string name() const = 0;
  virtual const char* processes() const = 0;  ///< As bench::serversOf() has it.
  virtual std::string few() const = 0;        ///< URIs, without a scheme.
  virtual std::string many() const = 0;

  /// `values` are of the number `seq`. The bytes of a row are those that the server says of its table.
  void fill(const std::string& table, const std::string& columns, const std::string& values) {
    for (int part = 0; part < millions; ++part) {
      insert(table, " (" + columns + ") SELECT " + values + " FROM ", part * million + 1,
             (part + 1) * million);
    }
    bench::print({.name = "rows, " + name() + ", " + table + ": bytes of each",
                  .floor = "",
                  .measured = bench::figure(analyze(table) / millions / million, "")});
  }

 private:
  /// One row for each number; `rest` ends where they are named.
  virtual void insert(const std::string& table, const std::string& rest, int first, int last) = 0;
  /// Returns its bytes.
  virtual double analyze(const std::string& table) = 0;
};

class OnMariadb final : public Databases {
 public:
  std::string name() const override { return "MariaDB"; }
  const char* processes() const override { return "mariadbd"; }
  std::string few() const override { return placeOf(few_); }
  std::string many() const override { return placeOf(many_); }

 private:
  std::string placeOf(const std::string& database) const {
    const std::string uri = server_.uri(database);
    return uri.substr(uri.find("://"));
  }
  void insert(const std::string& table, const std::string& rest, int first, int last) override {
    server_.execute("INSERT INTO `" + many_ + "`." + table + rest + "seq_" + std::to_string(first) + "_to_" +
                    std::to_string(last));
  }
  double analyze(const std::string& table) override {
    server_.execute("ANALYZE TABLE `" + many_ + "`." + table);
    return std::stod(
        server_.ask("SELECT data_length + index_length FROM information_schema.tables WHERE "
                    "table_schema = '" +
                    many_ + "' AND table_name = '" + table + "'"));
  }

  test::DatabaseServer server_{test::Brand::mariadb, {"--innodb-flush-log-at-trx-commit=0"}};
  const std::string few_ = server_.newDatabase();
  const std::string many_ = server_.newDatabase();
};

class OnPostgres final : public Databases {
 public:
  OnPostgres() {
    for (const char* each : {"few", "many"})
      server_.execute(std::string("CREATE DATABASE ") + each, "postgres");
  }
  std::string name() const override { return "PostgreSQL"; }
  const char* processes() const override { return "bin/postgres"; }
  std::string few() const override { return placeOf("few"); }
  std::string many() const override { return placeOf("many"); }

 private:
  std::string placeOf(const std::string& database) const {
    return "://auditor@127.0.0.1:" + std::to_string(server_.port()) + "/" + database;
  }
  void insert(const std::string& table, const std::string& rest, int first, int last) override {
    server_.execute("INSERT INTO " + table + rest + "generate_series(" + std::to_string(first) + ", " +
                        std::to_string(last) + ") AS seq",
                    "many");
  }
  double analyze(const std::string& table) override {
    server_.execute("VACUUM ANALYZE " + table, "many");
    return std::stod(server_.ask("SELECT pg_total_relation_size('" + table + "')", "many"));
  }

  test::PostgresServer server_;
};

void compare(const Databases& databases, const std::string& table, bench::Way few, bench::Way many, int count,
             char** arguments) {
  few.name = "beside none";
  many.name = "beside 10,000,000";
  const bench::Goal goal{.ours = many.name, .beside = few.name, .server = theSame, .client = theSame};
  bench::Contest("rows, " + databases.name() + ", " + table, databases.processes(), count, arguments)
      .measure(1, {std::move(few), std::move(many)}, {goal});
}

LockManager open(const std::string& uri) {
  StoreRegistry registry;
  mysql::use(registry);
  postgres::use(registry);
  LockManager locks(registry.open(uri + "?createTable=true"));
  (void)locks.tryLock("makes the table");
  return locks;
}

void locksOf(const std::string& scheme, const std::string& table, const std::string& columns,
             const std::string& values, Databases& databases, int count, char** arguments) {
  LockManager few = open(scheme + databases.few()), many = open(scheme + databases.many());
  databases.fill(table, columns, values);
  compare(databases, table, bench::pairs("", few), bench::pairs("", many), count, arguments);
}

void orders(const std::string& scheme, const std::string& values, Databases& databases, int count,
            char** arguments) {
  LockManager locks(std::make_shared<MemoryDriver>());
  const auto open = [&](const std::string& place) {
    auto service =
        std::make_shared<inventory::StockService>(scheme + place, locks, inventory::Way::conditionalUpdate);
    service->createSchema();
    for (int i = 0; i < 100; ++i) service->restock("pen", million);
    return service;
  };
  const auto few = open(databases.few()), many = open(databases.many());
  databases.fill("lockkeeper_orders", "order_id, sku, quantity, attempt", values);
  const auto deductions = [](const auto& service) {
    return bench::Way{"", [service](int) {
                        static std::atomic<int> next = 0;
                        return [service] {
                          if (service->deduct("pen", 1, "order-" + std::to_string(++next)) !=
                              inventory::Deduction::deducted)
                            throw std::runtime_error("nothing was deducted");
                        };
                      }};
  };
  compare(databases, "lockkeeper_orders", deductions(few), deductions(many), count, arguments);
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  {
    OnMariadb databases;
    const std::string key = "CONCAT('row:', LPAD(seq, 8, '0'))";
    locksOf("mysql+version", "lockkeeper_locks", "lock_key, version, token, owner, expires_at",
            key + ", 1, '', '', UTC_TIMESTAMP(6)", databases, count, arguments);
    locksOf("mysql+getlock", "lockkeeper_fences", "name, fence", key + ", seq", databases, count, arguments);
    orders("mysql", "CONCAT('row-', LPAD(seq, 8, '0')), CONCAT('sku-', seq % 1000), 1, 1", databases, count,
           arguments);
  }
  OnPostgres databases;
  locksOf("postgres+version", "lockkeeper_locks", "lock_key, fence",
          "convert_to('row:' || lpad(seq::text, 8, '0'), 'UTF8'), seq", databases, count, arguments);
  orders(
      "postgres",
      "convert_to('row-' || lpad(seq::text, 8, '0'), 'UTF8'), convert_to('sku-' || seq % 1000, 'UTF8'), 1, 1",
      databases, count, arguments);
  return 0;
}
