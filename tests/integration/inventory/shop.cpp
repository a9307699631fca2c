#include "shop.h"

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
  if (backend == Backend::sqlite) return "Sqlite";
  return backend == Backend::postgres ? "Postgres" : nameOf(brandOf(backend));
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

DatabaseServer& mysqlServerOf(Backend backend) {
  static std::map<Backend, DatabaseServer> servers;
  return servers.try_emplace(backend, brandOf(backend)).first->second;
}

StockServer& serverOf(Backend backend) {
  static std::map<Backend, std::unique_ptr<StockServer>> servers;
  std::unique_ptr<StockServer>& server = servers[backend];
  if (!server)
    server = backend == Backend::postgres ? startPostgres() : asStockServer(mysqlServerOf(backend));
  return *server;
}

Shop::Shop(Backend backend)
    : backend_(backend), driver_(std::make_shared<MemoryDriver>()), manager_(driver_) {
  static std::once_flag registered;
  std::call_once(registered, [] { Poco::Data::SQLite::Connector::registerConnector(); });
  if (backend == Backend::sqlite) {
    database_ = folder_ / "shop.db";
    uri_ = "sqlite:" + database_;
  } else {
    StockServer& server = serverOf(backend);
    database_ = server.newDatabase();
    uri_ = server.uri(database_, server.port());
  }
  service(Way::conditionalUpdate).createSchema();
}

StockService Shop::service(Way way, inventory::StockOptions options) {
  return StockService(uri_, manager_, way, std::move(options));
}

Poco::Data::Session Shop::session() const {
  if (backend_ != Backend::sqlite) return serverOf(backend_).session(database_);
  Poco::Data::Session session("SQLite", database_, 10);
  session << "PRAGMA busy_timeout = 20000", now;
  return session;
}

std::int64_t Shop::level(const std::string& sku) const {
  return number("SELECT level FROM lockkeeper_stock WHERE sku = ?", sku) +
         number("SELECT " + sumOf("level") + " FROM lockkeeper_buckets WHERE sku = ?", sku);
}

std::int64_t Shop::orders(const std::string& sku) const {
  return number("SELECT COUNT(*) FROM lockkeeper_orders WHERE sku = ?", sku);
}

std::int64_t Shop::sold(const std::string& sku) const {
  return number("SELECT " + sumOf("quantity") + " FROM lockkeeper_orders WHERE sku = ?", sku);
}

std::int64_t Shop::ledger(const std::string& sku) const {
  return number("SELECT " + sumOf("amount") + " FROM lockkeeper_changes WHERE sku = ?", sku) - sold(sku);
}

std::int64_t Shop::reserved(const std::string& sku) const {
  return number("SELECT " + sumOf("quantity") +
                    " FROM lockkeeper_reservations "
                    "WHERE sku = ? AND state IN ('held', 'confirmed')",
                sku);
}

std::int64_t Shop::returned(const std::string& sku) const {
  return number("SELECT " + sumOf("amount") +
                    " FROM lockkeeper_changes "
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
  std::string id = backend_ == Backend::sqlite ? "'" + name + "' || (" + number + ")"
                                               : "CONCAT('" + name + "', " + number + ")";
  if (backend_ == Backend::postgres) id = "CAST(" + id + " AS BYTEA)";
  return {std::move(id), " FROM " + digits + "a, " + digits + "b, " + digits + "c, " + digits + "d, " +
                             digits + "e WHERE " + number + " < " + std::to_string(count)};
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

std::string Shop::sumOf(const std::string& column) const {
  return "CAST(COALESCE(SUM(" + column + "), 0) AS " +
         (backend_ == Backend::postgres ? "BIGINT)" : "SIGNED)");
}

std::string Shop::marked(const std::string& statement) const {
  if (backend_ != Backend::postgres) return statement;
  std::string text;
  int marks = 0;
  for (const char each : statement) {
    if (each == '?') {
      text += "$" + std::to_string(++marks);
    } else {
      text += each;
    }
  }
  return text;
}

std::int64_t Shop::number(const std::string& query, const std::string& argument) const {
  std::int64_t value = 0;
  Poco::Data::Session reading = session();
  Poco::Data::Statement select(reading);
  select << marked(query), into(value), bind(argument);
  EXPECT_EQ(select.execute(), 1U) << query;
  return value;
}

}  // namespace lockkeeper::test
