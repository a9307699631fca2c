#include "database/reservation_tables.h"

#include <array>
#include <utility>
#include <variant>

#include "database/sql_text.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

using std::chrono::milliseconds;

constexpr std::array written{ReservationState::held, ReservationState::confirmed, ReservationState::cancelled,
                             ReservationState::expired};

ReservationState stateIn(const mysql::SqlValue& value) {
  const auto& text = std::get<std::string>(value);
  for (const ReservationState each : written) {
    if (text == toString(each)) return each;
  }
  throw ConfigError("the table lockkeeper_reservations has the state " + quoted(text));
}

}  // namespace

std::vector<ReservedLine> ReservationTables::lines(const std::string& id) {
  return select("reservation_id = ? ORDER BY line", {id});
}

std::vector<ReservedLine> ReservationTables::expiredOf(const std::string& sku, std::int64_t most) {
  return select("sku = ? AND state = 'held' AND expires_at <= " + transaction_.clock() +
                    " ORDER BY expires_at, reservation_id LIMIT ?",
                {sku, most});
}

std::vector<std::string> ReservationTables::skusOfExpired(std::int64_t most) {
  std::vector<std::string> skus;
  for (const mysql::SqlRow& row : transaction_.selectAll(
           "SELECT DISTINCT HEX(sku) FROM lockkeeper_reservations WHERE state = 'held' AND expires_at <= " +
               transaction_.clock() + " LIMIT ?",
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

mysql::SqlStatement ReservationTables::insertion(const ReservedLine& line, milliseconds ttl) const {
  return {
      "INSERT INTO lockkeeper_reservations (reservation_id, line, sku, wanted, quantity, state, expires_at) "
      "VALUES (?,?,?,?,?,'held'," +
          transaction_.clock() + " + ?)" +
          unlessThere(dialect_, "lockkeeper_reservations", "reservation_id, line"),
      {line.id, line.line, line.sku, line.wanted, line.quantity, std::int64_t{ttl.count()}}};
}

mysql::SqlStatement ReservationTables::ending(const ReservedLine& line, ReservationState state) {
  return {
      "UPDATE lockkeeper_reservations SET state = ? WHERE reservation_id = ? AND line = ? "
      "AND state = 'held'",
      {std::string(toString(state)), line.id, line.line}};
}

mysql::SqlStatement ReservationTables::extension(const ReservedLine& line, milliseconds ttl) const {
  return {"UPDATE lockkeeper_reservations SET expires_at = " + transaction_.clock() +
              " + ? WHERE reservation_id = ? AND line = ?",
          {std::int64_t{ttl.count()}, line.id, line.line}};
}

std::vector<ReservedLine> ReservationTables::select(const std::string& condition,
                                                    const mysql::SqlRow& values) {
  std::vector<ReservedLine> lines;
  for (const mysql::SqlRow& row : transaction_.selectAll(
           "SELECT HEX(reservation_id), line, HEX(sku), wanted, quantity, state, expires_at - " +
               transaction_.clock() + " FROM lockkeeper_reservations WHERE " + condition,
           values)) {
    lines.push_back({.id = bytesIn(row[0]),
                     .line = numberIn(row[1]),
                     .sku = bytesIn(row[2]),
                     .wanted = numberIn(row[3]),
                     .quantity = numberIn(row[4]),
                     .state = stateIn(row[5]),
                     .left = milliseconds(numberIn(row[6]))});
  }
  return lines;
}

}  // namespace lockkeeper::inventory
