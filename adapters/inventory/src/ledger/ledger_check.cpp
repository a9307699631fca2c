#include "ledger/ledger_check.h"

#include "database/dialect.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

// The server sums up so many in less than a tenth of a second.
constexpr std::int64_t rowsOfPage = 20'000;

}  // namespace

std::vector<Discrepancy> LedgerCheck::run() {
  add({.table = "lockkeeper_stock", .key = "sku", .value = "level"}, &Books::level);
  add({.table = "lockkeeper_buckets", .key = "sku", .value = "level"}, &Books::level);
  add({.table = "lockkeeper_orders", .key = "order_id", .value = "-quantity"}, &Books::ledger);
  // By the primary key, whose first column is the reason.
  for (const std::string& each : reasons()) {
    add({.table = "lockkeeper_changes",
         .key = "id",
         .value = "amount",
         .condition = "reason = ? AND ",
         .values = {each}},
        &Books::ledger);
  }
  std::vector<Discrepancy> found;
  for (const auto& [sku, books] : books_) {
    if (books.level != books.ledger) found.push_back({sku, books.level, books.ledger});
  }
  return found;
}

void LedgerCheck::add(const Rows& rows, std::int64_t Books::*sum) {
  const std::string where = " FROM " + rows.table + " WHERE " + rows.condition + rows.key;
  mysql::SqlRow values = rows.values;
  values.emplace_back(std::string());
  for (std::string after = " >= ?";; after = " > ?") {
    checkStop();
    mysql::SqlRow paging = values;
    paging.emplace_back(rowsOfPage - 1);
    const auto end = transaction_.select(
        "SELECT " + hex(dialect_, rows.key) + where + after + " ORDER BY " + rows.key + " LIMIT 1 OFFSET ?",
        paging);
    mysql::SqlRow bounds = values;
    if (end) bounds.emplace_back(bytesIn(end->front()));
    const std::string until = end ? " AND " + rows.key + " <= ?" : "";
    for (const mysql::SqlRow& row :
         transaction_.selectAll("SELECT " + hex(dialect_, "sku") + ", SUM(" + rows.value + ")" + where +
                                    after + until + " GROUP BY sku",
                                bounds)) {
      books_[bytesIn(row[0])].*sum += numberIn(row[1]);
    }
    if (!end) return;
    values.back() = bounds.back();
  }
}

std::vector<std::string> LedgerCheck::reasons() {
  std::vector<std::string> found;
  for (std::string last;; last = found.back()) {
    const auto next =
        transaction_.select("SELECT " + hex(dialect_, "reason") +
                                " FROM lockkeeper_changes WHERE reason > ? ORDER BY reason LIMIT 1",
                            {last});
    if (!next) return found;
    found.push_back(bytesIn(next->front()));
  }
}

void LedgerCheck::checkStop() const {
  if (stop_.stop_requested()) throw StoreUnavailable("the check of the ledger was stopped");
}

}  // namespace lockkeeper::inventory
