// How cost grows with rows on MariaDB: of locks, of fences, and of orders that were booked. What is beside
// ten million rows and what is beside none are on the same server.

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
#include "lockkeeper/store_registry.h"

namespace lockkeeper {
namespace {

constexpr int million = 1'000'000;
constexpr int millions = 10;
// What is said to cost the same with many as with none.
constexpr double theSame = 1.25;

/// One database with ten million rows, and one without.
class Databases {
 public:
  std::string few() const { return server_.uri(few_); }
  std::string many() const { return server_.uri(many_); }

  /// `values` are of the number `seq`. The bytes of a row are those that the server says of its table.
  void fill(const std::string& table, const std::string& columns, const std::string& values) {
    const std::string name = "`" + many_ + "`." + table;
    for (int part = 0; part < millions; ++part) {
      const std::string numbers =
          "seq_" + std::to_string(part * million + 1) + "_to_" + std::to_string((part + 1) * million);
      server_.execute("INSERT INTO " + name + " (" + columns + ") SELECT " + values + " FROM " + numbers);
    }
    server_.execute("ANALYZE TABLE " + name);
    const double bytes =
        std::stod(server_.ask("SELECT data_length + index_length FROM information_schema.tables WHERE "
                              "table_schema = '" +
                              many_ + "' AND table_name = '" + table + "'"));
    bench::print({.name = "rows, " + table + ": bytes of each",
                  .floor = "",
                  .measured = bench::figure(bytes / millions / million, "")});
  }

 private:
  test::DatabaseServer server_{test::Brand::mariadb, {"--innodb-flush-log-at-trx-commit=0"}};
  const std::string few_ = server_.newDatabase();
  const std::string many_ = server_.newDatabase();
};

void compare(const std::string& table, bench::Way few, bench::Way many, int count, char** arguments) {
  few.name = "beside none";
  many.name = "beside 10,000,000";
  const bench::Goal goal{.ours = many.name, .beside = few.name, .server = theSame, .client = theSame};
  bench::Contest("rows, " + table, "mariadbd", count, arguments)
      .measure(1, {std::move(few), std::move(many)}, {goal});
}

LockManager open(const std::string& scheme, const std::string& uri) {
  StoreRegistry registry;
  mysql::use(registry);
  LockManager locks(registry.open(scheme + uri.substr(uri.find("://")) + "?createTable=true"));
  (void)locks.tryLock("makes the table");
  return locks;
}

void locksOf(const std::string& scheme, const std::string& table, const std::string& columns,
             const std::string& values, Databases& databases, int count, char** arguments) {
  LockManager few = open(scheme, databases.few()), many = open(scheme, databases.many());
  databases.fill(table, columns, values);
  compare(table, bench::pairs("", few), bench::pairs("", many), count, arguments);
}

void orders(Databases& databases, int count, char** arguments) {
  LockManager locks(std::make_shared<MemoryDriver>());
  const auto open = [&](const std::string& uri) {
    auto service = std::make_shared<inventory::StockService>(uri, locks, inventory::Way::conditionalUpdate);
    service->createSchema();
    for (int i = 0; i < 100; ++i) service->restock("pen", million);
    return service;
  };
  const auto few = open(databases.few()), many = open(databases.many());
  databases.fill("lockkeeper_orders", "order_id, sku, quantity, attempt",
                 "CONCAT('row-', LPAD(seq, 8, '0')), CONCAT('sku-', seq % 1000), 1, 1");
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
  compare("lockkeeper_orders", deductions(few), deductions(many), count, arguments);
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  Databases databases;
  const std::string name = "CONCAT('row:', LPAD(seq, 8, '0'))";
  locksOf("mysql+version", "lockkeeper_locks", "lock_key, version, token, owner, expires_at",
          name + ", 1, '', '', UTC_TIMESTAMP(6)", databases, count, arguments);
  locksOf("mysql+getlock", "lockkeeper_fences", "name, fence", name + ", seq", databases, count, arguments);
  orders(databases, count, arguments);
  return 0;
}
