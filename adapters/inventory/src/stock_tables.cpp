#include "stock_tables.h"

#include <string_view>
#include <variant>

#include "schema.h"

namespace lockkeeper::inventory {

void StockTables::createAll() {
  constexpr std::string_view end = ";\n";
  std::string_view rest = dialect_ == Dialect::sqlite ? sqliteSchema : mysqlSchema;
  for (auto at = rest.find(end); at != std::string_view::npos; at = rest.find(end)) {
    transaction_.execute(std::string(rest.substr(0, at)), {});
    rest.remove_prefix(at + end.size());
  }
}

bool StockTables::insertOrder(const Order& order) {
  // A row that is there already stays as it is, and counts as not changed.
  const std::string insert =
      "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES (?, ?, ?, ?) ";
  return transaction_.execute(insert + (dialect_ == Dialect::mysql
                                            ? "ON DUPLICATE KEY UPDATE attempt = lockkeeper_orders.attempt"
                                            : "ON CONFLICT (order_id) DO NOTHING"),
                              {order.orderId, order.sku, order.quantity, order.attempt}) == 1;
}

std::optional<std::int64_t> StockTables::attemptOf(const std::string& orderId) {
  // SQLite's BEGIN IMMEDIATE has waited already.
  return number(std::string("SELECT attempt FROM lockkeeper_orders WHERE order_id = ?") +
                    (dialect_ == Dialect::mysql ? " FOR UPDATE" : ""),
                orderId);
}

void StockTables::touchArticleOf(const std::string& orderId) {
  transaction_.execute(
      "UPDATE lockkeeper_stock SET version = version + 1 "
      "WHERE sku = (SELECT sku FROM lockkeeper_orders WHERE order_id = ?)",
      {orderId});
}

std::optional<std::int64_t> StockTables::level(const std::string& sku) {
  return number("SELECT level FROM lockkeeper_stock WHERE sku = ?", sku);
}

bool StockTables::claim(const std::string& sku, std::int64_t fence) {
  return transaction_.execute(
             "UPDATE lockkeeper_stock SET fence = ?, version = version + 1 WHERE sku = ? AND fence < ?",
             {fence, sku, fence}) == 1;
}

bool StockTables::take(const std::string& sku, std::int64_t quantity) {
  return transaction_.execute(
             "UPDATE lockkeeper_stock SET level = level - ?, version = version + 1 WHERE sku = ? AND level "
             ">= ?",
             {quantity, sku, quantity}) == 1;
}

void StockTables::add(const std::string& sku, std::int64_t quantity) {
  transaction_.execute(
      std::string("INSERT INTO lockkeeper_stock (sku, level) VALUES (?, ?) ") +
          (dialect_ == Dialect::mysql ? "ON DUPLICATE KEY UPDATE" : "ON CONFLICT (sku) DO UPDATE SET") +
          " level = level + ?, version = version + 1",
      {sku, quantity, quantity});
}

void StockTables::resetFences() {
  transaction_.execute("UPDATE lockkeeper_stock SET fence = 0, version = version + 1", {});
}

std::optional<std::int64_t> StockTables::number(const std::string& select, const std::string& value) {
  const auto row = transaction_.select(select, {value});
  return row ? std::optional(std::get<std::int64_t>(row->front())) : std::nullopt;
}

}  // namespace lockkeeper::inventory
