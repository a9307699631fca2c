#include "stock_tables.h"

#include <Poco/Data/Statement.h>

#include <string_view>

#include "schema.h"
#include "sqlite.h"

namespace lockkeeper::inventory {
namespace {

using Poco::Data::Statement;
using Poco::Data::Keywords::bind;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

}  // namespace

void StockTables::createAll() {
  constexpr std::string_view end = ";\n";
  std::string_view rest = dialect_ == Dialect::sqlite ? sqliteSchema : mysqlSchema;
  for (auto at = rest.find(end); at != std::string_view::npos; at = rest.find(end)) {
    sql_ << std::string(rest.substr(0, at)), now;
    rest.remove_prefix(at + end.size());
  }
}

bool StockTables::insertOrder(const Order& order) {
  try {
    sql_ << "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES (?, ?, ?, ?)",
        bind(order.orderId), bind(order.sku), bind(order.quantity), bind(order.attempt), now;
    return true;
  } catch (const Poco::Exception& exception) {
    if (classify(exception) == sql::SqlFault::duplicateKey) return false;
    throw;
  }
}

std::optional<std::int64_t> StockTables::attemptOf(const std::string& orderId) {
  std::int64_t attempt = 0;
  // SQLite's BEGIN IMMEDIATE has waited already.
  Statement select(sql_);
  select << "SELECT attempt FROM lockkeeper_orders WHERE order_id = ?"
         << (dialect_ == Dialect::mysql ? " FOR UPDATE" : ""),
      into(attempt), bind(orderId);
  if (select.execute() == 0) return std::nullopt;
  return attempt;
}

void StockTables::touchArticleOf(const std::string& orderId) {
  sql_ << "UPDATE lockkeeper_stock SET version = version + 1 "
          "WHERE sku = (SELECT sku FROM lockkeeper_orders WHERE order_id = ?)",
      bind(orderId), now;
}

std::optional<std::int64_t> StockTables::level(const std::string& sku) {
  std::int64_t level = 0;
  Statement select(sql_);
  select << "SELECT level FROM lockkeeper_stock WHERE sku = ?", into(level), bind(sku);
  if (select.execute() == 0) return std::nullopt;
  return level;
}

bool StockTables::claim(const std::string& sku, std::int64_t fence) {
  Statement update(sql_);
  update << "UPDATE lockkeeper_stock SET fence = ?, version = version + 1 WHERE sku = ? AND fence <= ?",
      bind(fence), bind(sku), bind(fence);
  return update.execute() == 1;
}

bool StockTables::take(const std::string& sku, std::int64_t quantity) {
  Statement update(sql_);
  update
      << "UPDATE lockkeeper_stock SET level = level - ?, version = version + 1 WHERE sku = ? AND level >= ?",
      bind(quantity), bind(sku), bind(quantity);
  return update.execute() == 1;
}

void StockTables::add(const std::string& sku, std::int64_t quantity) {
  sql_ << "INSERT INTO lockkeeper_stock (sku, level) VALUES (?, ?) "
       << (dialect_ == Dialect::mysql ? "ON DUPLICATE KEY UPDATE" : "ON CONFLICT (sku) DO UPDATE SET")
       << " level = level + ?, version = version + 1",
      bind(sku), bind(quantity), bind(quantity), now;
}

void StockTables::resetFences() {
  sql_ << "UPDATE lockkeeper_stock SET fence = 0, version = version + 1", now;
}

}  // namespace lockkeeper::inventory
