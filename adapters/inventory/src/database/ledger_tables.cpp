#include "database/ledger_tables.h"

#include <utility>
#include <variant>

#include "database/dialect.h"

namespace lockkeeper::inventory {
namespace {

using Milliseconds = std::chrono::milliseconds;

bool isNull(const mysql::SqlValue& value) { return std::holds_alternative<std::monostate>(value); }

mysql::SqlValue nullIfEmpty(const std::string& text) {
  return text.empty() ? mysql::SqlValue() : mysql::SqlValue(text);
}

}  // namespace

std::optional<WrittenChange> LedgerTables::find(const std::string& reason, const std::string& id) {
  const auto row =
      transaction_.select("SELECT " + hex(dialect_, "sku") +
                              ", attempt FROM lockkeeper_changes WHERE reason = ? AND id = ? AND line = 0",
                          {reason, id});
  if (!row) return std::nullopt;
  return WrittenChange{bytesIn(row->at(0)), numberIn(row->at(1))};
}

mysql::SqlStatement LedgerTables::insertion(std::span<const Change> changes, const Source& source) const {
  const std::string now = timeOfRow(transaction_, dialect_);
  // Servers would lock the article's row to read it.
  std::string level = "NULL";
  if (!source.bucket) {
    const std::string unlessSplit = source.buckets == 1 ? "" : " AND buckets = 1";
    level = "(SELECT level FROM lockkeeper_stock WHERE sku = ?" + unlessSplit + ")+?";
  }
  const std::string row = "(?,?,?,?,?,?,?,?," + level + "," + now + ")";
  mysql::SqlStatement insert{
      "INSERT INTO lockkeeper_changes (reason, id, line, sku, amount, order_id, attempt, written_by, "
      "level_after, written_at) VALUES " +
          repeated(row, changes.size()) + unlessThere(dialect_, "lockkeeper_changes", "reason, id, line"),
      {}};
  insert.values.reserve(10 * changes.size());
  for (const Change& each : changes) {
    insert.values.insert(insert.values.end(), {each.reason, each.id, each.line, each.sku, each.amount,
                                               nullIfEmpty(each.orderId), each.attempt, each.who});
    if (!source.bucket) insert.values.insert(insert.values.end(), {each.sku, each.later});
  }
  return insert;
}

bool LedgerTables::insert(const Change& change) {
  const mysql::SqlStatement statement = insertion({&change, 1}, heldArticle);
  return transaction_.execute(statement.text, statement.values) == 1;
}

std::int64_t LedgerTables::nextLine(const std::string& reservationId) {
  const auto row = transaction_.select(
      "SELECT COALESCE(MAX(line), -1) + 1 FROM lockkeeper_changes "
      "WHERE reason IN ('reserve', 'replace') AND id = ?",
      {reservationId});
  return numberIn(row->front());
}

std::set<std::string> LedgerTables::reservedAmong(std::span<const std::string> ids) {
  std::set<std::string> reserved;
  for (const mysql::SqlRow& row :
       transaction_.selectAll("SELECT DISTINCT " + hex(dialect_, "id") +
                                  " FROM lockkeeper_changes WHERE reason = 'reserve' AND id IN (" +
                                  repeated("?", ids.size()) + ")",
                              mysql::SqlRow(ids.begin(), ids.end()))) {
    reserved.insert(bytesIn(row.front()));
  }
  return reserved;
}

std::int64_t LedgerTables::returned(const std::string& orderId, const std::string& sku) {
  const auto row = transaction_.select(
      "SELECT COALESCE(SUM(amount), 0) FROM lockkeeper_changes "
      "WHERE order_id = ? AND sku = ? AND reason = 'return'",
      {orderId, sku});
  return numberIn(row->front());
}

// An article that was made with the ledger begins with a restock.
void LedgerTables::open(const std::string& sku, std::int64_t added, const std::string& who) {
  const auto begun = transaction_.select(
      "SELECT line FROM lockkeeper_changes WHERE sku = ? AND reason IN ('opening', 'restock') LIMIT 1",
      {sku});
  if (begun) return;
  const auto missing = transaction_.select(
      "SELECT (SELECT level FROM lockkeeper_stock WHERE sku = ?) - ? "
      "+ (SELECT COALESCE(SUM(level), 0) FROM lockkeeper_buckets WHERE sku = ?) "
      "+ (SELECT COALESCE(SUM(quantity), 0) FROM lockkeeper_orders WHERE sku = ?) "
      "- (SELECT COALESCE(SUM(amount), 0) FROM lockkeeper_changes WHERE sku = ?)",
      {sku, added, sku, sku, sku});
  const std::int64_t amount = numberIn(missing->front());
  if (amount != 0) insert({.reason = "opening", .id = sku, .sku = sku, .amount = amount, .who = who});
}

std::vector<std::string> LedgerTables::unopened(const std::string& after, std::int64_t most) {
  std::vector<std::string> skus;
  for (const mysql::SqlRow& row : transaction_.selectAll(
           "SELECT " + hex(dialect_, "sku") +
               " FROM lockkeeper_stock WHERE sku > ? AND NOT EXISTS "
               "(SELECT 1 FROM lockkeeper_changes WHERE lockkeeper_changes.sku = lockkeeper_stock.sku "
               "AND reason IN ('opening', 'restock')) ORDER BY sku LIMIT ?",
           {after, most})) {
    skus.push_back(bytesIn(row.front()));
  }
  return skus;
}

// From each table as many as may be wanted, in the order of its index.
std::vector<LedgerEntry> LedgerTables::entries(const std::string& sku, std::int64_t most) {
  const auto columns = [this](const std::string& reason, const std::string& id, const std::string& amount,
                              const std::string& orderId) {
    return "SELECT " + hex(dialect_, reason) + " AS reason, " + hex(dialect_, id) + " AS id, " + amount +
           " AS amount, " + hex(dialect_, orderId) + " AS order_id, " + hex(dialect_, "written_by") +
           " AS written_by, written_at, level_after FROM ";
  };
  std::vector<LedgerEntry> entries;
  for (const mysql::SqlRow& row : transaction_.selectAll(
           "SELECT * FROM (SELECT * FROM (" + columns("'order'", "o.order_id", "-quantity", "''") +
               "lockkeeper_orders AS o WHERE sku = ? ORDER BY o.written_at DESC, o.order_id DESC LIMIT ?) "
               "AS orders UNION ALL SELECT * FROM (" +
               columns("c.reason", "c.id", "amount", "COALESCE(c.order_id, '')") +
               "lockkeeper_changes AS c WHERE sku = ? "
               "ORDER BY c.written_at DESC, c.reason DESC, c.id DESC, c.line DESC LIMIT ?) AS changes"
               ") AS ledger ORDER BY written_at DESC, id DESC LIMIT ?",
           {sku, most, sku, most, most})) {
    LedgerEntry entry{.reason = bytesIn(row[0]), .id = bytesIn(row[1]), .amount = numberIn(row[2])};
    entry.orderId = bytesIn(row[3]);
    entry.who = bytesIn(row[4]);
    if (!isNull(row[5])) entry.at.emplace(Milliseconds(numberIn(row[5])));
    if (!isNull(row[6])) entry.levelAfter = numberIn(row[6]);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace lockkeeper::inventory
