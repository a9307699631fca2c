#include "database/stock_tables.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "database/dialect.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::size_t mostOrdersInserted = mostBoundBySqlite / 6;

/// So that the transaction holds the article's row and has something to commit. The version is what it was
/// then: nothing in stock has changed.
void addTouching(std::vector<mysql::SqlStatement>& statements, const std::string& sku) {
  for (const char* change : {"version + 1", "version - 1"}) {
    statements.push_back(
        {std::string("UPDATE lockkeeper_stock SET version = ") + change + " WHERE sku = ?", {sku}});
  }
}

}  // namespace

bool StockTables::insertOrder(const Order& order, std::optional<std::int64_t> levelBefore) {
  const Order* const only = &order;
  const mysql::SqlStatement insert = insertion(rowsOf({&only, 1}, "?", levelBefore));
  return transaction_.execute(insert.text, insert.values) == 1;
}

/// `level` stands in the statement for the level that an order leaves, and has a '?' for what `levelBefore`
/// counts down to.
StockTables::OrderRows StockTables::rowsOf(std::span<const Order* const> orders, const std::string& level,
                                           std::optional<std::int64_t> levelBefore) const {
  // Only what the columns' defaults do not say: these rows are by far the most, and servers read them as
  // text.
  const std::string& who = orders.front()->who;
  OrderRows rows{.columns = "order_id, sku, quantity, attempt, level_after"};
  std::string row = "?,?,?,?," + level;
  if (!who.empty()) {
    rows.columns += ", written_by";
    row += ",?";
  }
  if (dialect_ == Dialect::sqlite) {
    rows.columns += ", written_at";
    row += "," + transaction_.clock();
  }
  rows.text = repeated("(" + row + ")", orders.size());
  rows.values.reserve(6 * orders.size());
  for (const Order* each : orders) {
    rows.values.insert(rows.values.end(), {each->orderId, each->sku, each->quantity, each->attempt});
    if (levelBefore) *levelBefore -= each->quantity;
    rows.values.push_back(levelBefore ? mysql::SqlValue(*levelBefore) : mysql::SqlValue());
    if (!who.empty()) rows.values.emplace_back(who);
  }
  return rows;
}

mysql::SqlStatement StockTables::insertion(OrderRows rows) const {
  return {"INSERT INTO lockkeeper_orders (" + rows.columns + ") VALUES " + rows.text +
              unlessThere(dialect_, "lockkeeper_orders", "order_id"),
          std::move(rows.values)};
}

std::optional<std::int64_t> StockTables::attemptOf(const std::string& orderId) {
  // PostgreSQL shows and locks only what is committed; whoever writes the same id waits for the others.
  if (dialect_ == Dialect::postgres && insertOrder({.sku = orderId, .quantity = 1, .orderId = orderId}))
    return std::nullopt;
  // SQLite's BEGIN IMMEDIATE has waited already.
  return number(
      std::string("SELECT attempt FROM lockkeeper_orders WHERE order_id = ?").append(forUpdate(dialect_)),
      orderId);
}

std::vector<BookedOrder> StockTables::bookedAmong(std::span<const std::string_view> orderIds) {
  mysql::SqlRow ids;
  ids.reserve(orderIds.size());
  for (const std::string_view each : orderIds) ids.emplace_back(std::string(each));
  const std::string marks = repeated("?", ids.size());
  std::vector<BookedOrder> booked;
  for (const mysql::SqlRow& row :
       transaction_.selectAll("SELECT " + hex(dialect_, "order_id") +
                                  ", attempt FROM lockkeeper_orders WHERE order_id IN (" + marks + ")",
                              ids)) {
    booked.push_back({bytesIn(row[0]), numberIn(row[1])});
  }
  return booked;
}

// The conditions are ranges of the index, whose last column is the id: nothing is read twice. PostgreSQL
// takes only a comparison of rows for one, and has no row without a time.
std::vector<std::string> StockTables::orderIdsAfter(BookedPlace& place, const std::string& sku,
                                                    std::int64_t most) {
  std::string after = "written_at IS NULL AND order_id > ? OR written_at IS NOT NULL";
  mysql::SqlRow values{sku, place.orderId, most};
  if (!std::holds_alternative<std::monostate>(place.writtenAt)) {
    const bool comparesRows = dialect_ == Dialect::postgres;
    after = comparesRows ? "(written_at, order_id) > (?, ?)"
                         : "written_at = ? AND order_id > ? OR written_at > ?";
    values = {sku, place.writtenAt, place.orderId};
    if (!comparesRows) values.push_back(place.writtenAt);
    values.emplace_back(most);
  }
  std::vector<std::string> ids;
  for (mysql::SqlRow& row : transaction_.selectAll(
           "SELECT " + hex(dialect_, "order_id") + ", written_at FROM lockkeeper_orders WHERE sku = ? AND (" +
               after + ") ORDER BY written_at, order_id LIMIT ?",
           values)) {
    ids.push_back(bytesIn(row[0]));
    place.writtenAt = std::move(row[1]);
  }
  if (!ids.empty()) place.orderId = ids.back();
  return ids;
}

// What is subtracted from -1 twice is what it was, and no value is too large for it.
void StockTables::rewriteOrder(const std::string& orderId) {
  const mysql::SqlStatement change{"UPDATE lockkeeper_orders SET attempt = -1 - attempt WHERE order_id = ?",
                                   {orderId}};
  const mysql::SqlStatement statements[] = {change, change};
  transaction_.execute(statements);
}

std::int64_t StockTables::sold(const std::string& orderId, const std::string& sku) {
  const auto row = transaction_.select(
      "SELECT quantity FROM lockkeeper_orders WHERE order_id = ? AND sku = ?", {orderId, sku});
  return row ? numberIn(row->front()) : 0;
}

std::optional<Stock> StockTables::stock(const std::string& sku) {
  const auto row = transaction_.select(
      "SELECT s.level + COALESCE(SUM(b.level), 0), s.version + COALESCE(SUM(b.version), 0) "
      "FROM lockkeeper_stock AS s "
      "LEFT JOIN lockkeeper_buckets AS b ON b.sku = s.sku WHERE s.sku = ? GROUP BY s.sku, s.level, s.version",
      {sku});
  if (!row) return std::nullopt;
  return Stock{numberIn(row->at(0)), numberIn(row->at(1))};
}

std::map<std::string, Article> StockTables::articles(const std::vector<std::string>& skus) {
  std::map<std::string, Article> articles;
  const std::string marks = repeated("?", skus.size());
  for (const mysql::SqlRow& row :
       transaction_.selectAll("SELECT " + hex(dialect_, "sku") +
                                  ", level, buckets FROM lockkeeper_stock WHERE sku IN (" + marks + ")",
                              mysql::SqlRow(skus.begin(), skus.end()))) {
    articles.emplace(bytesIn(row[0]), Article{numberIn(row[1]), numberIn(row[2])});
  }
  return articles;
}

std::optional<Article> StockTables::held(const std::string& sku) {
  const auto row = transaction_.select(
      std::string("SELECT level, buckets FROM lockkeeper_stock WHERE sku = ?").append(forUpdate(dialect_)),
      {sku});
  if (!row) return std::nullopt;
  return Article{numberIn(row->at(0)), numberIn(row->at(1))};
}

Buckets StockTables::holdBuckets(const std::string& sku) {
  const auto rows = transaction_.selectAll(
      std::string("SELECT level, version FROM lockkeeper_buckets WHERE sku = ? ORDER BY sku, buckets, bucket")
          .append(forUpdate(dialect_)),
      {sku});
  Buckets held{.count = std::max(std::int64_t{1}, static_cast<std::int64_t>(rows.size()))};
  for (const mysql::SqlRow& row : rows) {
    held.level += numberIn(row[0]);
    held.version += numberIn(row[1]);
  }
  return held;
}

void StockTables::spread(const std::string& sku, const Buckets& held, std::int64_t left) {
  const std::int64_t share = left / (held.count + 1);
  const mysql::SqlStatement statements[] = {
      {"UPDATE lockkeeper_buckets SET level = ?, version = version + 1 WHERE sku = ?", {share, sku}},
      putting(sku, held.level - held.count * share)};
  transaction_.execute(statements);
}

// The sum of the versions grows by this as by any write, so that it never comes again.
void StockTables::split(const std::string& sku, const Article& article, const Buckets& held,
                        std::int64_t buckets) {
  const std::int64_t all = article.level + held.level;
  const std::int64_t share = buckets > 1 ? all / (buckets + 1) : 0;
  std::vector<mysql::SqlStatement> statements;
  if (held.count > 1) statements.push_back({"DELETE FROM lockkeeper_buckets WHERE sku = ?", {sku}});
  if (buckets > 1) {
    mysql::SqlStatement& insert = statements.emplace_back(
        mysql::SqlStatement{"INSERT INTO lockkeeper_buckets (sku, buckets, bucket, level) VALUES " +
                                repeated("(?,?,?,?)", static_cast<std::size_t>(buckets)),
                            {}});
    for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
      insert.values.insert(insert.values.end(), {sku, buckets, bucket, share});
    }
  }
  statements.push_back(
      {"UPDATE lockkeeper_stock SET level = ?, buckets = ?, version = version + ? WHERE sku = ?",
       {all - (buckets > 1 ? buckets * share : 0), buckets, held.version + 1, sku}});
  transaction_.execute(statements);
}

bool StockTables::claim(const std::string& sku, std::int64_t fence) {
  return transaction_.execute(
             "UPDATE lockkeeper_stock SET fence = ?, version = version + 1 WHERE sku = ? AND fence < ?",
             {fence, sku, fence}) == 1;
}

// LAST_INSERT_ID() is what the UPDATE has left, for a statement that is sent with it.
mysql::SqlStatement StockTables::taking(const std::string& sku, std::int64_t quantity,
                                        const Source& source) const {
  const std::string left = dialect_ == Dialect::mysql ? "LAST_INSERT_ID(level - ?)" : "level - ?";
  mysql::SqlStatement take{
      std::string("UPDATE ").append(source.bucket ? "lockkeeper_buckets" : "lockkeeper_stock") +
          " SET level = " + left + ", version = version + 1 WHERE sku = ? AND level >= ?",
      {quantity, sku, quantity}};
  const auto require = [&](const char* condition, const std::optional<std::int64_t>& value) {
    if (!value) return;
    take.text += condition;
    take.values.emplace_back(*value);
  };
  require(" AND buckets = ?", source.buckets);
  require(" AND bucket = ?", source.bucket);
  return take;
}

bool StockTables::take(const Order& order) {
  const mysql::SqlStatement statements[] = {
      taking(order.sku, order.quantity, {}),
      {"UPDATE lockkeeper_orders SET level_after = (SELECT level FROM lockkeeper_stock WHERE sku = ?) "
       "WHERE order_id = ?",
       {order.sku, order.orderId}}};
  return transaction_.execute(statements) == 2;
}

bool StockTables::book(std::span<const Order* const> orders, const Source& source) {
  std::int64_t sum = 0;
  for (const Order* each : orders) sum += each->quantity;
  const std::string& sku = orders.front()->sku;
  const bool split = source.buckets != 1;  // Nobody knows then what is in its other rows.
  const mysql::SqlStatement take = taking(sku, sum, source);
  if (dialect_ == Dialect::mysql) {
    const mysql::SqlStatement statements[] = {
        take, insertion(split ? rowsOf(orders, "?", {}) : rowsOf(orders, "LAST_INSERT_ID()+?", sum))};
    return transaction_.execute(statements) == 1 + orders.size();
  }
  if (dialect_ == Dialect::postgres) {
    const mysql::SqlStatement statement =
        takingAndInserting(take, rowsOf(orders, "taken.level+?", split ? std::nullopt : std::optional(sum)));
    return transaction_.execute(statement.text, statement.values) == orders.size();
  }
  if (transaction_.execute(take.text, take.values) != 1) return false;
  std::optional<std::int64_t> before;
  if (!split) before = held(sku).value().level + sum;
  for (auto rest = orders; !rest.empty();) {
    const auto next = rest.first(std::min(mostOrdersInserted, rest.size()));
    const mysql::SqlStatement insert = insertion(rowsOf(next, "?", before));
    if (transaction_.execute(insert.text, insert.values) != next.size()) return false;
    for (const Order* each : next) {
      if (before) *before -= each->quantity;
    }
    rest = rest.subspan(next.size());
  }
  return true;
}

// What is not there to be taken inserts nothing. The level is that of the row which was changed.
mysql::SqlStatement StockTables::takingAndInserting(const mysql::SqlStatement& take, OrderRows rows) const {
  mysql::SqlStatement both{"WITH taken AS (" + take.text +
                               " RETURNING level) INSERT INTO lockkeeper_orders (" + rows.columns +
                               ") SELECT booked.* FROM taken, LATERAL (VALUES " + rows.text + ") AS booked" +
                               unlessThere(dialect_, "lockkeeper_orders", "order_id"),
                           take.values};
  both.values.insert(both.values.end(), std::make_move_iterator(rows.values.begin()),
                     std::make_move_iterator(rows.values.end()));
  return both;
}

void StockTables::add(const std::string& sku, std::int64_t quantity) {
  transaction_.execute("INSERT INTO lockkeeper_stock (sku, level) VALUES (?, ?)" + ifThere(dialect_, "sku") +
                           "level = lockkeeper_stock.level + ?, version = lockkeeper_stock.version + 1",
                       {sku, quantity, quantity});
}

bool StockTables::touch(const std::string& sku) {
  std::vector<mysql::SqlStatement> statements;
  addTouching(statements, sku);
  return transaction_.execute(statements) == statements.size();
}

void StockTables::hold(const std::vector<std::string>& skus) {
  std::vector<mysql::SqlStatement> statements;
  for (const std::string& each : skus) addTouching(statements, each);
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
