#include "limit/rate_statements.h"

#include <algorithm>
#include <utility>

#include "session/statements/held_rows.h"
#include "session/statements/sql_text.h"

namespace lockkeeper::mysql::rates {
namespace {

__extension__ using Wide = __int128;

// state = first * 10^10 + second.
constexpr Wide scale = 10'000'000'000;

constexpr const char* columns = ",family,id,state DIV 10000000000,state % 10000000000,log";

std::string text(Wide number) {
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(number % 10));
    number /= 10;
  } while (number > 0);
  std::ranges::reverse(digits);
  return digits;
}

void addWhere(std::string& batch, const RowName& row) {
  batch.append(" WHERE family=")
      .append(std::to_string(row.family))
      .append(" AND id=")
      .append(hexLiteral(row.id));
}

// The limit comes last, because the statement that waits for a row must be the first.
std::string thenIdle(const std::string& batch, std::chrono::seconds idle) {
  return batch + ";" + idleLimit(idle);
}

std::string readStatement(std::span<const RowName> rows, const char* ending) {
  // The table of one row answers the time where there is no row.
  std::string batch = std::string("SELECT ") + microsecondsNow + columns +
                      " FROM (SELECT 1) present LEFT JOIN lockkeeper_rates ON ";
  for (const RowName& row : rows) {
    batch.append(&row == rows.data() ? "(" : " OR ").append("(family=").append(std::to_string(row.family));
    batch.append(" AND id=").append(hexLiteral(row.id)).append(")");
  }
  return batch.append(")").append(ending);
}

}  // namespace

RowName rowOf(std::string_view key, RateKind kind) {
  return {isBucket(kind) ? 0 : kind == RateKind::slidingWindow ? 1 : 2, key};
}

std::string checkTable() {
  // Conditions that look at no row: a search for a key that is not there waits for the row behind it.
  return "INSERT INTO lockkeeper_rates(family,id) SELECT 0,'' FROM DUAL WHERE FALSE "
         "ON DUPLICATE KEY UPDATE kept_for=0;DELETE FROM lockkeeper_rates WHERE FALSE;"
         "SELECT 1 FROM lockkeeper_rates WHERE FALSE;COMMIT";
}

std::string readTable() { return "SELECT 1 FROM lockkeeper_rates WHERE FALSE;COMMIT"; }

std::string readRows(std::span<const RowName> rows) { return readStatement(rows, ";COMMIT"); }

std::string hold(std::span<const RowName> rows, std::chrono::seconds idle) {
  std::string batch = "INSERT INTO lockkeeper_rates(family,id) VALUES";
  for (const RowName& row : rows) {
    batch.append(&row == rows.data() ? "(" : ",(").append(std::to_string(row.family));
    batch.append(",").append(hexLiteral(row.id)).append(")");
  }
  batch.append(" ON DUPLICATE KEY UPDATE kept_for=kept_for;").append(readStatement(rows, ""));
  return thenIdle(batch, idle);
}

std::string holdIfThere(const RowName& row, std::chrono::seconds idle) {
  std::string batch = std::string("SELECT ") + microsecondsNow + columns + " FROM lockkeeper_rates";
  addWhere(batch, row);
  batch += " FOR UPDATE";
  return thenIdle(batch, idle);
}

std::string commit(const std::string& updates) { return noIdleLimit + (";" + updates) + "COMMIT"; }

void addUpdate(std::string& batch, const RowName& row, const RateState& state, std::int64_t keptFor) {
  batch.append("UPDATE lockkeeper_rates SET kept_for=").append(std::to_string(keptFor));
  batch.append(",state=").append(text(Wide{state.first} * scale + state.second));
  addWhere(batch, row);
  batch += ";";
}

void addUpdate(std::string& batch, const RowName& row, std::span<const std::int64_t> log,
               std::int64_t period) {
  std::string bytes;
  bytes.reserve(log.size() * 8);
  for (const std::int64_t time : log) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>((time >> shift) & 0xff);
  }
  batch.append("UPDATE lockkeeper_rates SET log=").append(hexLiteral(bytes));
  batch.append(",state=").append(text(Wide{log.empty() ? 0 : log.back()} * scale));
  batch.append(",kept_for=").append(std::to_string(period));
  addWhere(batch, row);
  batch += ";";
}

std::string remove(const RowName& row) {
  std::string batch = "DELETE FROM lockkeeper_rates";
  addWhere(batch, row);
  return batch.append(";COMMIT");
}

UnusedRows::Table unusedRows() {
  return {.name = "lockkeeper_rates",
          .family = "family",
          .key = "id",
          .isUnused = std::string("state DIV 10000000000+kept_for+3600000000<=") + microsecondsNow};
}

std::vector<std::int64_t> readLog(std::string_view bytes) {
  std::vector<std::int64_t> log(bytes.size() / 8);
  for (std::size_t i = 0; i < bytes.size() / 8 * 8; ++i) {
    log[i / 8] = (log[i / 8] << 8) | static_cast<unsigned char>(bytes[i]);
  }
  return log;
}

}  // namespace lockkeeper::mysql::rates
