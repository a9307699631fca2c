#include "limit/rate_statements.h"

#include <algorithm>
#include <utility>

#include "session/statements/held_rows.h"
#include "session/statements/sql_text.h"

namespace lockkeeper::mysql::rates {
namespace {

__extension__ using Wide = __int128;

// state = first * base + second. Numbers with ".0" make the server calculate in decimals, which do not
// overflow.
constexpr const char* base = "10000000000.0";
constexpr const char* first = "(state DIV 10000000000)";
constexpr const char* second = "(state % 10000000000)";

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

std::string decimal(Wide number) { return text(number) + ".0"; }

void addWhere(std::string& batch, const RowName& row) {
  batch.append(" WHERE family=")
      .append(std::to_string(row.family))
      .append(" AND id=")
      .append(hexLiteral(row.id));
}

// That of the beginning of the statement, wherever it stands. Not a variable: the statement that waits for a
// row must be the first of its batch, or its client could not tell that it waits.
constexpr const char* now = microsecondsNow;

/// What the server decides about one charge, in its own words. They depend on the row only by `state`.
struct Decision {
  std::string fits;      ///< Whether the cost fits at all,
  std::string granted;   ///< and how many times.
  std::string state;     ///< What becomes of the state then.
  std::string newState;  ///< That of a row which is not there yet.
  std::int64_t keptFor;  ///< The state is as good as none when so much has passed since its first number.
};

// In parts of a microsecond: decimals hold them all.
Decision decideBucket(const RateCharge& charge, std::int64_t firstGrant) {
  const RateLaw& law = *charge.law;
  const std::string parts = decimal(law.parts);
  const std::string cost = decimal(Wide{charge.cost} * law.period);
  const std::string times = std::to_string(charge.times);
  const auto packed = [&](const std::string& time) {
    return "((" + time + ") DIV " + parts + ")*" + base + "+(" + time + ") % " + parts;
  };
  // A law with another denominator may have written the second number: less than a microsecond, rounded up.
  const std::string full = std::string(first) + "*" + parts + "+LEAST(" + second + "," + parts + ")";
  const std::string from = "GREATEST(" + full + "," + now + "*" + parts + ")";
  const RateTime room = roomOf(charge);
  const std::string top =
      std::string(now) + "*" + parts + "+" + decimal(Wide{room.micros} * law.parts + room.parts);
  Decision decision;
  decision.fits = from + "+" + cost + "<=" + top;
  decision.granted =
      charge.times == 1 ? "1" : "LEAST(" + times + ",(" + top + "-" + from + ") DIV " + cost + ")";
  decision.state = packed(from + "+" + decision.granted + "*" + cost);
  decision.newState = packed(std::string(now) + "*" + parts + "+" + std::to_string(firstGrant) + "*" + cost);
  decision.keptFor = 1;
  return decision;
}

Decision decideWindow(const RateCharge& charge, std::int64_t firstGrant) {
  const std::string limit = std::to_string(charge.law->limit);
  const std::string period = std::to_string(charge.law->period);
  const std::string cost = std::to_string(charge.cost);
  const std::string times = std::to_string(charge.times);
  const std::string present = std::string("(") + now + "-" + now + " % " + period + ")";
  // Not an earlier window than the one that was used last: a clock that goes back opens none again.
  const std::string last = "(" + std::string(first) + "-" + first + " % " + period + ")";
  const std::string used = "IF(" + last + ">=" + present + "," + second + ",0)";
  Decision decision;
  decision.fits = used + "+" + cost + "<=" + limit;
  decision.granted =
      charge.times == 1 ? "1" : "LEAST(" + times + ",(" + limit + "-" + used + ") DIV " + cost + ")";
  decision.state =
      "GREATEST(" + last + "," + present + ")*" + base + "+" + used + "+" + decision.granted + "*" + cost;
  decision.newState = present + "*" + base + "+" + text(Wide{firstGrant} * charge.cost);
  decision.keptFor = charge.law->period;
  return decision;
}

// The limit comes last, because the statement that waits for a row must be the first.
std::string thenIdle(const std::string& batch, std::chrono::seconds idle) {
  return batch + ";" + idleLimit(idle);
}

std::string readStatement(std::span<const RowName> rows, const char* ending) {
  // The table of one row answers the time where there is no row.
  std::string batch =
      std::string("SELECT ") + now + columns + " FROM (SELECT 1) present LEFT JOIN lockkeeper_rates ON ";
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
         "ON DUPLICATE KEY UPDATE granted=0;DELETE FROM lockkeeper_rates WHERE FALSE;"
         "SELECT 1 FROM lockkeeper_rates WHERE FALSE;COMMIT";
}

std::string readTable() { return "SELECT 1 FROM lockkeeper_rates WHERE FALSE;COMMIT"; }

std::string charge(const RateCharge& charge) {
  const RowName row = rowOf(charge.key, charge.law->kind);
  RateState empty;
  const std::int64_t firstGrant = admit(charge, empty, 0);
  const Decision decision =
      isBucket(charge.law->kind) ? decideBucket(charge, firstGrant) : decideWindow(charge, firstGrant);

  std::string batch = "INSERT INTO lockkeeper_rates(family,id,state,granted,kept_for) VALUES(";
  batch.append(std::to_string(row.family)).append(",").append(hexLiteral(row.id));
  batch.append(",").append(decision.newState).append(",").append(std::to_string(firstGrant));
  // The time goes on to the SELECT as the session's last insert id.
  batch.append(",").append(std::to_string(decision.keptFor)).append("+0*LAST_INSERT_ID(").append(now);
  batch.append(")) ON DUPLICATE KEY UPDATE granted=IF(");
  batch.append(decision.fits).append(",").append(decision.granted).append(",granted),kept_for=IF(");
  batch.append(decision.fits)
      .append(",")
      .append(std::to_string(decision.keptFor))
      .append(",kept_for),state=IF(");
  // The last one, because the others look at the state as it was. A refusal changes nothing, so that nothing
  // is written and no row counted.
  batch.append(decision.fits).append(",").append(decision.state).append(",state)");
  batch.append(
      ";SELECT IF(ROW_COUNT()>0,granted,0),LAST_INSERT_ID(),state DIV 10000000000,state % 10000000000 "
      "FROM lockkeeper_rates");
  addWhere(batch, row);
  return batch.append(";COMMIT");
}

std::string readRows(std::span<const RowName> rows) { return readStatement(rows, ";COMMIT"); }

std::string hold(std::span<const RowName> rows, std::chrono::seconds idle) {
  std::string batch = "INSERT INTO lockkeeper_rates(family,id) VALUES";
  for (const RowName& row : rows) {
    batch.append(&row == rows.data() ? "(" : ",(").append(std::to_string(row.family));
    batch.append(",").append(hexLiteral(row.id)).append(")");
  }
  batch.append(" ON DUPLICATE KEY UPDATE granted=granted;").append(readStatement(rows, ""));
  return thenIdle(batch, idle);
}

std::string holdIfThere(const RowName& row, std::chrono::seconds idle) {
  std::string batch = std::string("SELECT ") + now + columns + " FROM lockkeeper_rates";
  addWhere(batch, row);
  batch += " FOR UPDATE";
  return thenIdle(batch, idle);
}

std::string commit(const std::string& updates) { return noIdleLimit + (";" + updates) + "COMMIT"; }

void addUpdate(std::string& batch, const RowName& row, const RateState& state, std::int64_t keptFor) {
  constexpr Wide scale = 10'000'000'000;
  batch.append("UPDATE lockkeeper_rates SET state=").append(text(Wide{state.first} * scale + state.second));
  batch.append(",kept_for=").append(std::to_string(keptFor));
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
  batch.append(",state=").append(text(Wide{log.empty() ? 0 : log.back()} * 10'000'000'000));
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
