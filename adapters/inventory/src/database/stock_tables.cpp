#include "database/stock_tables.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>
#include <variant>

#include "schema.h"

namespace lockkeeper::inventory {
namespace {

// SQLite binds no more than 999 values to one statement, in all versions.
constexpr std::size_t mostInsertedBySqlite = 999 / 4;

mysql::SqlStatement taking(const std::string& sku, std::int64_t quantity) {
  return {"UPDATE lockkeeper_stock SET level = level - ?, version = version + 1 WHERE sku = ? AND level >= ?",
          {quantity, sku, quantity}};
}

std::string bytesOf(std::string_view hexadecimal) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hexadecimal.data() + i, hexadecimal.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

/// `each`, once for each of `count`, with commas.
std::string repeated(std::string_view each, std::size_t count) {
  std::string text;
  text.reserve((each.size() + 1) * count);
  for (std::size_t i = 0; i < count; ++i) text.append(i == 0 ? "" : ",").append(each);
  return text;
}

}  // namespace

void StockTables::createAll() {
  constexpr std::string_view end = ";\n";
  std::string_view rest = dialect_ == Dialect::sqlite ? sqliteSchema : mysqlSchema;
  for (auto at = rest.find(end); at != std::string_view::npos; at = rest.find(end)) {
    transaction_.execute(std::string(rest.substr(0, at)), {});
    rest.remove_prefix(at + end.size());
  }
}

bool StockTables::insertOrder(const Order& order) {
  const Order* const only = &order;
  const mysql::SqlStatement insert = insertion({&only, 1});
  return transaction_.execute(insert.text, insert.values) == 1;
}

// A row that is there already stays as it is, and counts as not changed.
mysql::SqlStatement StockTables::insertion(std::span<const Order* const> orders) const {
  mysql::SqlStatement insert{
      "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES " +
          repeated("(?,?,?,?)", orders.size()) +
          (dialect_ == Dialect::mysql ? " ON DUPLICATE KEY UPDATE attempt = lockkeeper_orders.attempt"
                                      : " ON CONFLICT (order_id) DO NOTHING"),
      {}};
  insert.values.reserve(4 * orders.size());
  for (const Order* each : orders) {
    insert.values.insert(insert.values.end(), {each->orderId, each->sku, each->quantity, each->attempt});
  }
  return insert;
}

std::optional<std::int64_t> StockTables::attemptOf(const std::string& orderId) {
  // SQLite's BEGIN IMMEDIATE has waited already.
  return number(std::string("SELECT attempt FROM lockkeeper_orders WHERE order_id = ?") +
                    (dialect_ == Dialect::mysql ? " FOR UPDATE" : ""),
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
  // In hexadecimal, or Poco would cut what it reads from SQLite at its first NUL.
  for (const mysql::SqlRow& row : transaction_.selectAll(
           "SELECT HEX(order_id) FROM lockkeeper_orders WHERE sku = ? AND order_id > ? ORDER BY order_id "
           "LIMIT ?",
           {sku, after, most})) {
    ids.push_back(bytesOf(std::get<std::string>(row[0])));
  }
  return ids;
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

std::optional<std::int64_t> StockTables::heldLevel(const std::string& sku) {
  // SQLite's BEGIN IMMEDIATE keeps the whole database.
  return number(std::string("SELECT level FROM lockkeeper_stock WHERE sku = ?") +
                    (dialect_ == Dialect::mysql ? " FOR UPDATE" : ""),
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

bool StockTables::take(const std::string& sku, std::int64_t quantity) {
  const mysql::SqlStatement take = taking(sku, quantity);
  return transaction_.execute(take.text, take.values) == 1;
}

bool StockTables::book(std::span<const Order* const> orders) {
  const std::int64_t sum =
      std::accumulate(orders.begin(), orders.end(), std::int64_t{0},
                      [](std::int64_t before, const Order* each) { return before + each->quantity; });
  std::vector<mysql::SqlStatement> statements{taking(orders.front()->sku, sum)};
  const std::size_t most = dialect_ == Dialect::mysql ? orders.size() : mostInsertedBySqlite;
  for (auto rest = orders; !rest.empty(); rest = rest.subspan(std::min(most, rest.size()))) {
    statements.push_back(insertion(rest.first(std::min(most, rest.size()))));
  }
  return transaction_.execute(statements) == 1 + orders.size();
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
