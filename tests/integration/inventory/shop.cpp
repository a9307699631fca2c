#include "shop.h"

#include <Poco/Data/MySQL/Connector.h>
#include <Poco/Data/SQLite/Connector.h>
#include <Poco/Data/Statement.h>

#include <map>
#include <mutex>

namespace lockkeeper::test {

using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::bind;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

namespace {

Brand brandOf(Backend backend) { return backend == Backend::mysql ? Brand::mysql : Brand::mariadb; }

}  // namespace

std::string nameOf(Backend backend) {
  return backend == Backend::sqlite ? "Sqlite" : nameOf(brandOf(backend));
}

std::string nameOf(Way way) {
  switch (way) {
    case Way::fencedRow:
      return "FencedRow";
    case Way::optimistic:
      return "Optimistic";
    case Way::lockedOptimistic:
      return "LockedOptimistic";
    case Way::conditionalUpdate:
      break;
  }
  return "ConditionalUpdate";
}

DatabaseServer& serverOf(Backend backend) {
  static std::map<Backend, DatabaseServer> servers;
  return servers.try_emplace(backend, brandOf(backend)).first->second;
}

Shop::Shop(Backend backend)
    : backend_(backend), driver_(std::make_shared<MemoryDriver>()), manager_(driver_) {
  static std::once_flag registered;
  std::call_once(registered, [] {
    Poco::Data::SQLite::Connector::registerConnector();
    Poco::Data::MySQL::Connector::registerConnector();
  });
  if (backend == Backend::sqlite) {
    connection_ = folder_ / "shop.db";
    uri_ = "sqlite:" + connection_;
  } else {
    DatabaseServer& server = serverOf(backend);
    const std::string database = server.newDatabase();
    connection_ = server.connectionString(database);
    uri_ = server.uri(database);
  }
  service(Way::conditionalUpdate).createSchema();
}

StockService Shop::service(Way way, inventory::StockOptions options) {
  return StockService(uri_, manager_, way, std::move(options));
}

Poco::Data::Session Shop::session() const {
  Poco::Data::Session session(backend_ == Backend::sqlite ? "SQLite" : "MySQL", connection_, 10);
  if (backend_ == Backend::sqlite) session << "PRAGMA busy_timeout = 20000", now;
  return session;
}

std::int64_t Shop::level(const std::string& sku) const {
  return number("SELECT level FROM lockkeeper_stock WHERE sku = ?", sku) +
         number("SELECT CAST(COALESCE(SUM(level), 0) AS SIGNED) FROM lockkeeper_buckets WHERE sku = ?", sku);
}

std::int64_t Shop::orders(const std::string& sku) const {
  return number("SELECT COUNT(*) FROM lockkeeper_orders WHERE sku = ?", sku);
}

std::int64_t Shop::sold(const std::string& sku) const {
  return number("SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) FROM lockkeeper_orders WHERE sku = ?",
                sku);
}

std::int64_t Shop::ledger(const std::string& sku) const {
  return number("SELECT CAST(COALESCE(SUM(amount), 0) AS SIGNED) FROM lockkeeper_changes WHERE sku = ?",
                sku) -
         sold(sku);
}

std::int64_t Shop::reserved(const std::string& sku) const {
  return number(
      "SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) FROM lockkeeper_reservations "
      "WHERE sku = ? AND state IN ('held', 'confirmed')",
      sku);
}

std::int64_t Shop::returned(const std::string& sku) const {
  return number(
      "SELECT CAST(COALESCE(SUM(amount), 0) AS SIGNED) FROM lockkeeper_changes "
      "WHERE sku = ? AND reason = 'return'",
      sku);
}

bool Shop::booked(const std::string& orderId) const {
  return number("SELECT COUNT(*) FROM lockkeeper_orders WHERE order_id = ?", orderId) == 1;
}

Shop::ManyIds Shop::manyIds(std::int64_t count, const std::string& name) const {
  std::string digits = "(SELECT 0 AS d";
  for (int digit = 1; digit < 10; ++digit) digits += " UNION ALL SELECT " + std::to_string(digit);
  digits += ") AS ";
  const std::string number = "a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d";
  return {backend_ == Backend::sqlite ? "'" + name + "' || (" + number + ")"
                                      : "CONCAT('" + name + "', " + number + ")",
          " FROM " + digits + "a, " + digits + "b, " + digits + "c, " + digits + "d, " + digits + "e WHERE " +
              number + " < " + std::to_string(count)};
}

void Shop::addOrders(const std::string& sku, std::int64_t count, const std::string& name) const {
  const auto [id, rows] = manyIds(count, name);
  Poco::Data::Session writing = session();
  writing << "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt, written_at) SELECT " << id
          << ", '" << sku << "', 1, 0, 1" << rows,
      now;
  writing << "INSERT INTO lockkeeper_changes (reason, id, sku, amount, attempt, written_at) VALUES "
             "('restock', '"
          << name << "', '" << sku << "', " << std::to_string(count) << ", 0, 1)",
      now;
}

void Shop::addExpired(const std::string& sku, std::int64_t count, const std::string& name) const {
  const auto [id, rows] = manyIds(count, name);
  Poco::Data::Session writing = session();
  writing << "INSERT INTO lockkeeper_reservations (reservation_id, line, sku, wanted, quantity, state, "
             "expires_at) SELECT "
          << id << ", 0, '" << sku << "', 1, 1, 'held', 1" << rows,
      now;
  writing << "INSERT INTO lockkeeper_changes (reason, id, sku, amount, attempt) SELECT 'reserve', " << id
          << ", '" << sku << "', -1, 0" << rows,
      now;
  writing << "INSERT INTO lockkeeper_changes (reason, id, sku, amount, attempt) VALUES ('restock', '" << name
          << "', '" << sku << "', " << std::to_string(count) << ", 0)",
      now;
}

std::int64_t Shop::rowLockWaits() const {
  Poco::Data::Session watching = session();
  std::string name;
  std::string waits;
  watching << "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'", into(name), into(waits), now;
  return std::stoll(waits);
}

std::int64_t Shop::number(const std::string& query, const std::string& argument) const {
  std::int64_t value = 0;
  Poco::Data::Session reading = session();
  Poco::Data::Statement select(reading);
  select << query, into(value), bind(argument);
  EXPECT_EQ(select.execute(), 1U) << query;
  return value;
}

}  // namespace lockkeeper::test
