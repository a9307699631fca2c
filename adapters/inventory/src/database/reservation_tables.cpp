#include "database/reservation_tables.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "database/dialect.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

using std::chrono::milliseconds;

constexpr std::array written{ReservationState::held, ReservationState::confirmed, ReservationState::cancelled,
                             ReservationState::expired};

std::optional<ReservationState> stateIn(const std::string& text) {
  const auto* const found =
      std::ranges::find_if(written, [&](ReservationState each) { return text == toString(each); });
  return found == written.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::vector<ReservedLine> ReservationTables::lines(std::span<const std::string> ids) {
  return select("reservation_id IN (" + repeated("?", ids.size()) + ") ORDER BY reservation_id, line",
                mysql::SqlRow(ids.begin(), ids.end()));
}

std::vector<ReservedLine> ReservationTables::expiredOf(const std::string& sku, std::int64_t most) {
  return select("sku = ? AND state = 'held' AND expires_at <= " + once(dialect_, transaction_.clock()) +
                    " ORDER BY expires_at, reservation_id LIMIT ?",
                {sku, most});
}

std::vector<std::string> ReservationTables::skusOfExpired(std::int64_t most) {
  std::vector<std::string> skus;
  for (const mysql::SqlRow& row :
       transaction_.selectAll("SELECT DISTINCT " + hex(dialect_, "sku") +
                                  " FROM lockkeeper_reservations WHERE state = 'held' AND expires_at <= " +
                                  once(dialect_, transaction_.clock()) + " LIMIT ?",
                              {most})) {
    skus.push_back(bytesIn(row.front()));
  }
  return skus;
}

std::optional<milliseconds> ReservationTables::earliestExpiry(const std::string& sku) {
  const auto rows = transaction_.selectAll("SELECT expires_at - " + transaction_.clock() +
                                               " FROM lockkeeper_reservations WHERE sku = ? AND state = "
                                               "'held' ORDER BY expires_at LIMIT 1",
                                           {sku});
  return rows.empty() ? std::nullopt : std::optional(milliseconds(numberIn(rows.front().front())));
}

std::int64_t ReservationTables::sold(const std::string& id, const std::string& sku) {
  const auto row = transaction_.select(
      "SELECT quantity FROM lockkeeper_reservations WHERE reservation_id = ? AND sku = ? "
      "AND state = 'confirmed'",
      {id, sku});
  return row ? numberIn(row->front()) : 0;
}

mysql::SqlStatement ReservationTables::insertion(std::span<const ReservedLine> lines) const {
  mysql::SqlStatement insert{
      "INSERT INTO lockkeeper_reservations (reservation_id, line, sku, wanted, quantity, state, expires_at) "
      "VALUES " +
          repeated("(?,?,?,?,?,'held'," + transaction_.clock() + "+?)", lines.size()) +
          unlessThere(dialect_, "lockkeeper_reservations", "reservation_id, line"),
      {}};
  insert.values.reserve(6 * lines.size());
  for (const ReservedLine& each : lines) {
    insert.values.insert(insert.values.end(), {each.id, each.line, each.sku, each.wanted, each.quantity,
                                               std::int64_t{each.left.count()}});
  }
  return insert;
}

mysql::SqlStatement ReservationTables::ending(const ReservedLine& line, ReservationState state) {
  return {
      "UPDATE lockkeeper_reservations SET state = ? WHERE reservation_id = ? AND line = ? "
      "AND state = 'held'",
      {std::string(toString(state)), line.id, line.line}};
}

mysql::SqlStatement ReservationTables::removal(const ReservedLine& line) {
  return {"DELETE FROM lockkeeper_reservations WHERE reservation_id = ? AND line = ? AND state = 'held'",
          {line.id, line.line}};
}

mysql::SqlStatement ReservationTables::extension(const ReservedLine& line) const {
  return {"UPDATE lockkeeper_reservations SET expires_at = " + transaction_.clock() +
              " + ? WHERE reservation_id = ? AND line = ?",
          {std::int64_t{line.left.count()}, line.id, line.line}};
}

std::vector<ReservedLine> ReservationTables::select(const std::string& condition,
                                                    const mysql::SqlRow& values) {
  std::vector<ReservedLine> lines;
  for (const mysql::SqlRow& row : transaction_.selectAll(
           "SELECT " + hex(dialect_, "reservation_id") + ", line, " + hex(dialect_, "sku") +
               ", wanted, quantity, " + hex(dialect_, "state") + ", expires_at - " + transaction_.clock() +
               " FROM lockkeeper_reservations WHERE " + condition,
           values)) {
    const std::string state = bytesIn(row[5]);
    lines.push_back({.id = bytesIn(row[0]),
                     .line = numberIn(row[1]),
                     .sku = bytesIn(row[2]),
                     .wanted = numberIn(row[3]),
                     .quantity = numberIn(row[4]),
                     .state = stateIn(state),
                     .left = milliseconds(numberIn(row[6]))});
    if (!lines.back().state) lines.back().unknownState = state;
  }
  return lines;
}

}  // namespace lockkeeper::inventory
