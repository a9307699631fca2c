#pragma once

#include <gtest/gtest.h>

#include <Poco/Data/Session.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "stock_server.h"
#include "temp_folder.h"

namespace lockkeeper::test {

enum class Backend { sqlite, mariadb, mysql, postgres };

inline const auto allBackends = {Backend::sqlite, Backend::mariadb, Backend::mysql, Backend::postgres};
inline const auto allServers = {Backend::mariadb, Backend::mysql, Backend::postgres};
/// For tests that ask for what no other one has.
inline const auto mysqlServers = {Backend::mariadb, Backend::mysql};
inline const auto allWays = {inventory::Way::fencedRow, inventory::Way::conditionalUpdate,
                             inventory::Way::optimistic, inventory::Way::lockedOptimistic};

/// "Sqlite", …; "FencedRow", …: for names of tests.
std::string nameOf(Backend backend);
std::string nameOf(inventory::Way way);

/// What is in a request that is a COMMIT, and in no other one: on PostgreSQL, others name READ COMMITTED,
/// and a log-in ends with one.
inline std::string commitTo(Backend backend) {
  using std::string_literals::operator""s;
  return backend == Backend::postgres ? "Q\0\0\0\x0b"s + "COMMIT\0"s : "COMMIT";
}

/// The server of this test program, started when first asked for. Not for SQLite.
StockServer& serverOf(Backend backend);
/// The same server. For MariaDB and MySQL.
DatabaseServer& mysqlServerOf(Backend backend);

/// An empty database with the tables in it, and a lock store beside it. What tests claim about the books they
/// read through sessions of their own, not through the service.
class Shop {
 public:
  explicit Shop(Backend backend);

  Backend backend() const { return backend_; }
  const std::string& uri() const { return uri_; }
  /// On a server that is reached by another port, such as a proxy's.
  std::string uriBy(std::uint16_t port) const { return serverOf(backend_).uri(database_, port); }
  MemoryDriver& locks() { return *driver_; }
  std::shared_ptr<LockDriver> sharedLocks() const { return driver_; }
  LockManager& manager() { return manager_; }

  inventory::StockService service(inventory::Way way, inventory::StockOptions options = {});

  Poco::Data::Session session() const;

  /// Of the article's row and its buckets. Two moments.
  std::int64_t level(const std::string& sku) const;
  /// How many orders of the article are booked, and the sum of their quantities.
  std::int64_t orders(const std::string& sku) const;
  std::int64_t sold(const std::string& sku) const;
  /// What is in stock as the article's ledger tells.
  std::int64_t ledger(const std::string& sku) const;
  /// How many of the article are held by reservations, or were sold by them.
  std::int64_t reserved(const std::string& sku) const;
  /// How many of the article came back.
  std::int64_t returned(const std::string& sku) const;
  bool booked(const std::string& orderId) const;

  /// As if so many pieces (99'999 at most) had been restocked, and each reserved by a cart of its own that
  /// has expired. The ids begin with `name`, which no earlier call had.
  void addExpired(const std::string& sku, std::int64_t count, const std::string& name = "old") const;

  /// As if so many pieces (99'999 at most) had been restocked, and each sold by an order of its own. The ids
  /// are `name`, which no earlier call had, and a number from 0 on.
  void addOrders(const std::string& sku, std::int64_t count, const std::string& name) const;

  /// How many transactions wait for a row on the server now.
  std::int64_t rowLockWaits() const { return serverOf(backend_).rowLockWaits(); }

  /// The statement as Poco's connector for the database takes it: with $1, $2 … for each '?' where those are
  /// its marks.
  std::string marked(const std::string& statement) const;
  /// What selects the bytes of a column as text.
  std::string textOf(const std::string& column) const {
    return backend_ == Backend::postgres ? "convert_from(" + column + ", 'UTF8')" : column;
  }

 private:
  /// SQL for so many ids with the name, and the rows to select them from.
  struct ManyIds {
    std::string id;
    std::string rows;
  };
  std::string sumOf(const std::string& column) const;
  ManyIds manyIds(std::int64_t count, const std::string& name) const;
  std::int64_t number(const std::string& query, const std::string& argument) const;

  const Backend backend_;
  TempFolder folder_;
  std::string uri_;
  std::string database_;  // SQLite: the file.
  std::shared_ptr<MemoryDriver> driver_;
  LockManager manager_;
};

}  // namespace lockkeeper::test
