#include "database/stock_tables.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "database/sql_text.h"

namespace lockkeeper::inventory {
namespace {

// SQLite binds no more than 999 values to one statement, in all versions.
constexpr std::size_t mostInsertedBySqlite = 999 / 6;

}  // namespace

bool StockTables::insertOrder(const Order& order, std::optional<std::int64_t> levelBefore) {
  const Order* const only = &order;
  const mysql::SqlStatement insert = insertion({&only, 1}, "?", levelBefore);
  return transaction_.execute(insert.text, insert.values) == 1;
}

/// `level` stands in the statement for the level that an order leaves, and has a '?' for what `levelBefore`
/// counts down to.
mysql::SqlStatement StockTables::insertion(std::span<const Order* const> orders, const std::string& level,
                                           std::optional<std::int64_t> levelBefore) const {
  // Only what the columns' defaults do not say: these rows are by far the most, and servers read them as
  // text.
  const std::string& who = orders.front()->who;
  std::string columns = "order_id, sku, quantity, attempt, level_after";
  std::string row = "?,?,?,?," + level;
  if (!who.empty()) {
    columns += ", written_by";
    row += ",?";
  }
  if (dialect_ == Dialect::sqlite) {
    columns += ", written_at";
    row += "," + transaction_.clock();
  }
  mysql::SqlStatement insert{"INSERT INTO lockkeeper_orders (" + columns + ") VALUES " +
                                 repeated("(" + row + ")", orders.size()) +
                                 unlessThere(dialect_, "lockkeeper_orders", "order_id"),
                             {}};
  insert.values.reserve(6 * orders.size());
  for (const Order* each : orders) {
    insert.values.insert(insert.values.end(), {each->orderId, each->sku, each->quantity, each->attempt});
    if (levelBefore) *levelBefore -= each->quantity;
    insert.values.push_back(levelBefore ? mysql::SqlValue(*levelBefore) : mysql::SqlValue());
    if (!who.empty()) insert.values.emplace_back(who);
  }
  return insert;
}

std::optional<std::int64_t> StockTables::attemptOf(const std::string& orderId) {
  // SQLite's BEGIN IMMEDIATE has waited already.
  return number(
      std::string("SELECT attempt FROM lockkeeper_orders WHERE order_id = ?").append(forUpdate(dialect_)),
      orderId);
}

std::vector<BookedOrder> StockTables::bookedAmong(std::span<const std::string_view> orderIds) {
  std::vector<BookedOrder> booked;
  if (dialect_ == Dialect::sqlite) {
    // There are no round trips to save, and Poco would cut an id that it reads at its first NUL.
    for (const std::string_view each : orderIds) {
      std::string id(each);
      if (const auto attempt = attemptOf(id)) booked.push_back({std::move(id), *attempt});
    }
    return booked;
  }
  mysql::SqlRow ids;
  ids.reserve(orderIds.size());
  for (const std::string_view each : orderIds) ids.emplace_back(std::string(each));
  const std::string marks = repeated("?", ids.size());
  for (mysql::SqlRow& row : transaction_.selectAll(
           "SELECT order_id, attempt FROM lockkeeper_orders WHERE order_id IN (" + marks + ")", ids)) {
    booked.push_back({std::get<std::string>(std::move(row[0])), std::get<std::int64_t>(row[1])});
  }
  return booked;
}

std::vector<std::string> StockTables::orderIdsOf(const std::string& sku, const std::string& after,
                                                 std::int64_t most) {
  std::vector<std::string> ids;
  for (const mysql::SqlRow& row : transaction_.selectAll(
           "SELECT HEX(order_id) FROM lockkeeper_orders WHERE sku = ? AND order_id > ? ORDER BY order_id "
           "LIMIT ?",
           {sku, after, most})) {
    ids.push_back(bytesIn(row[0]));
  }
  return ids;
}

void StockTables::touchArticleOf(const std::string& orderId) {
  transaction_.execute(
      "UPDATE lockkeeper_stock SET version = version + 1 "
      "WHERE sku = (SELECT sku FROM lockkeeper_orders WHERE order_id = ?)",
      {orderId});
}

std::int64_t StockTables::sold(const std::string& orderId, const std::string& sku) {
  const auto row = transaction_.select(
      "SELECT quantity FROM lockkeeper_orders WHERE order_id = ? AND sku = ?", {orderId, sku});
  return row ? numberIn(row->front()) : 0;
}

std::optional<std::int64_t> StockTables::level(const std::string& sku) {
  return number("SELECT level FROM lockkeeper_stock WHERE sku = ?", sku);
}

std::map<std::string, std::int64_t> StockTables::levels(const std::vector<std::string>& skus) {
  std::map<std::string, std::int64_t> levels;
  const std::string marks = repeated("?", skus.size());
  for (const mysql::SqlRow& row :
       transaction_.selectAll("SELECT HEX(sku), level FROM lockkeeper_stock WHERE sku IN (" + marks + ")",
                              mysql::SqlRow(skus.begin(), skus.end()))) {
    levels.emplace(bytesIn(row[0]), numberIn(row[1]));
  }
  return levels;
}

std::optional<std::int64_t> StockTables::heldLevel(const std::string& sku) {
  return number(std::string("SELECT level FROM lockkeeper_stock WHERE sku = ?").append(forUpdate(dialect_)),
                sku);
}

std::optional<Stock> StockTables::stock(const std::string& sku) {
  const auto row = transaction_.select("SELECT level, version FROM lockkeeper_stock WHERE sku = ?", {sku});
  if (!row) return std::nullopt;
  return Stock{std::get<std::int64_t>(row->at(0)), std::get<std::int64_t>(row->at(1))};
}

bool StockTables::claim(const std::string& sku, std::int64_t fence) {
  return transaction_.execute(
             "UPDATE lockkeeper_stock SET fence = ?, version = version + 1 WHERE sku = ? AND fence < ?",
             {fence, sku, fence}) == 1;
}

// LAST_INSERT_ID() is what the UPDATE has left, for a statement that is sent with it.
mysql::SqlStatement StockTables::taking(const std::string& sku, std::int64_t quantity) const {
  const std::string left = dialect_ == Dialect::mysql ? "LAST_INSERT_ID(level - ?)" : "level - ?";
  return {
      "UPDATE lockkeeper_stock SET level = " + left + ", version = version + 1 WHERE sku = ? AND level >= ?",
      {quantity, sku, quantity}};
}

bool StockTables::take(const Order& order) {
  const mysql::SqlStatement statements[] = {
      taking(order.sku, order.quantity),
      {"UPDATE lockkeeper_orders SET level_after = (SELECT level FROM lockkeeper_stock WHERE sku = ?) "
       "WHERE order_id = ?",
       {order.sku, order.orderId}}};
  return transaction_.execute(statements) == 2;
}

bool StockTables::book(std::span<const Order* const> orders) {
  std::int64_t sum = 0;
  for (const Order* each : orders) sum += each->quantity;
  const mysql::SqlStatement take = taking(orders.front()->sku, sum);
  if (dialect_ == Dialect::mysql) {
    const mysql::SqlStatement statements[] = {take, insertion(orders, "LAST_INSERT_ID()+?", sum)};
    return transaction_.execute(statements) == 1 + orders.size();
  }
  if (transaction_.execute(take.text, take.values) != 1) return false;
  std::int64_t before = level(orders.front()->sku).value() + sum;
  for (auto rest = orders; !rest.empty();) {
    const auto next = rest.first(std::min(mostInsertedBySqlite, rest.size()));
    const mysql::SqlStatement insert = insertion(next, "?", before);
    if (transaction_.execute(insert.text, insert.values) != next.size()) return false;
    for (const Order* each : next) before -= each->quantity;
    rest = rest.subspan(next.size());
  }
  return true;
}

void StockTables::add(const std::string& sku, std::int64_t quantity) {
  transaction_.execute(
      std::string("INSERT INTO lockkeeper_stock (sku, level) VALUES (?, ?) ") +
          (dialect_ == Dialect::mysql ? "ON DUPLICATE KEY UPDATE" : "ON CONFLICT (sku) DO UPDATE SET") +
          " level = level + ?, version = version + 1",
      {sku, quantity, quantity});
}

bool StockTables::touch(const std::string& sku) {
  return transaction_.execute("UPDATE lockkeeper_stock SET version = version + 1 WHERE sku = ?", {sku}) == 1;
}

void StockTables::hold(const std::vector<std::string>& skus) {
  std::vector<mysql::SqlStatement> statements;
  for (const std::string& each : skus) {
    statements.push_back({"UPDATE lockkeeper_stock SET version = version + 1 WHERE sku = ?", {each}});
  }
  transaction_.execute(statements);
}

mysql::SqlStatement StockTables::putting(const std::string& sku, std::int64_t quantity) {
  return {"UPDATE lockkeeper_stock SET level = level + ?, version = version + 1 WHERE sku = ?",
          {quantity, sku}};
}

void StockTables::resetFences() {
  transaction_.execute("UPDATE lockkeeper_stock SET fence = 0, version = version + 1", {});
}

std::optional<std::int64_t> StockTables::number(const std::string& select, const std::string& value) {
  const auto row = transaction_.select(select, {value});
  return row ? std::optional(std::get<std::int64_t>(row->front())) : std::nullopt;
}

}  // namespace lockkeeper::inventory
