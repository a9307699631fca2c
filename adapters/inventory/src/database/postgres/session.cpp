#include "database/postgres/session.h"

#include <libpq-fe.h>
#include <poll.h>

#include <array>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <variant>

#include "database/postgres/fault.h"
#include "lockkeeper/base/hex.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::inventory {
namespace {

// The one warning that our statements can cause: somebody has ended the wait for a synchronous standby, and
// the server says that the commit has succeeded.
void noteWarning(void* hasWarned, const PGresult* notice) {
  const char* const severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* const state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
  if (severity == nullptr || state == nullptr || std::strcmp(severity, "WARNING") != 0) return;
  if (std::strcmp(state, "01000") == 0) *static_cast<bool*>(hasWarned) = true;
}

// Hexadecimal, so that no setting of the server and no byte of the value matters.
std::string bytesLiteral(const std::string& bytes) {
  std::string text = "E'\\\\x";
  text.reserve(text.size() + 2 * bytes.size() + 8);
  for (const char each : bytes) appendHex(text, static_cast<unsigned char>(each));
  return text + "'::bytea";
}

std::string numberLiteral(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  return "'" + std::string(text.data(), end.ptr) + "'::float8";
}

// In brackets, because what stands before it may be a minus.
std::string literalOf(const mysql::SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return *number < 0 ? "(" + std::to_string(*number) + ")" : std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return numberLiteral(*number);
  if (const auto* bytes = std::get_if<std::string>(&value)) return bytesLiteral(*bytes);
  return "NULL";
}

bool isWholeNumber(unsigned type) {
  constexpr unsigned int8 = 20, int2 = 21, int4 = 23;  // as in the server's pg_type
  return type == int8 || type == int2 || type == int4;
}

}  // namespace

PostgresSession::PostgresSession(LoggedIn logIn, std::string display, std::shared_ptr<Clock> clock)
    : connection_(std::move(logIn.connection)),
      isDirect_(logIn.isDirect),
      display_(std::move(display)),
      clock_(std::move(clock)) {
  PQsetNoticeReceiver(connection_.get(), noteWarning, &hasWarned_);
}

std::vector<PostgresResult> PostgresSession::ask(const std::string& statements, Instant deadline) {
  hasWarned_ = false;
  if (isLost_) lose("the session has ended");
  if (PQsendQuery(connection_.get(), statements.c_str()) == 0) lose(PQerrorMessage(connection_.get()));
  if (!flushTo(connection_.get(), *clock_, deadline)) lose("it could not be asked in time");
  std::vector<PostgresResult> results;
  PostgresResult fault;
  bool isLate = false;
  while (PostgresResult each = nextOf(connection_.get(), *clock_, deadline, isLate)) {
    const auto status = PQresultStatus(each.get());
    const bool isDone = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (!isDone && !fault) {
      fault = std::move(each);
    } else {
      results.push_back(std::move(each));
    }
    if (PQstatus(connection_.get()) != CONNECTION_OK) break;
  }
  if (isLate) lose("no answer in time");
  if (PQstatus(connection_.get()) != CONNECTION_OK) isLost_ = true;
  if (!fault && isLost_) lose(PQerrorMessage(connection_.get()));
  if (!fault) return results;
  if (!isLost_ && PQtransactionStatus(connection_.get()) == PQTRANS_INERROR) {
    try {
      (void)ask("ROLLBACK", deadline);
    } catch (const Error&) {
      isLost_ = true;
    }
  }
  throwFault(fault.get(), display_);
}

bool PostgresSession::usable() const {
  if (isLost_ || PQstatus(connection_.get()) != CONNECTION_OK) return false;
  pollfd socket{.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
  return ::poll(&socket, 1, 0) == 0;
}

void PostgresSession::lose(const std::string& words) {
  isLost_ = true;
  throw LostSession(display_ + ": " + words.substr(0, words.find('\n')));
}

std::string withLiterals(const std::string& statement, const mysql::SqlRow& values) {
  std::string text;
  std::size_t used = 0;
  char quote = 0;
  for (const char c : statement) {
    if (quote == 0 && c == '?') {
      if (used == values.size()) break;
      text += literalOf(values[used++]);
      continue;
    }
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    text += quote == 0 && c == '`' ? '"' : c;
  }
  if (used == values.size()) return text;
  throw std::invalid_argument(std::to_string(values.size()) + " values are given for: " + statement);
}

mysql::SqlRow sqlRowIn(const pg_result* result, int row) {
  mysql::SqlRow values;
  const int columns = PQnfields(result);
  values.reserve(static_cast<std::size_t>(columns));
  for (int column = 0; column < columns; ++column) {
    if (PQgetisnull(result, row, column) != 0) {
      values.emplace_back();
      continue;
    }
    std::string text(PQgetvalue(result, row, column),
                     static_cast<std::size_t>(PQgetlength(result, row, column)));
    const auto number = isWholeNumber(PQftype(result, column)) ? wholeNumber<std::int64_t>(text)
                                                               : std::optional<std::int64_t>();
    if (number) {
      values.emplace_back(*number);
    } else {
      values.emplace_back(std::move(text));
    }
  }
  return values;
}

std::size_t changedBy(const std::vector<PostgresResult>& results) {
  std::size_t changed = 0;
  for (const PostgresResult& each : results)
    changed += wholeNumber<std::size_t>(PQcmdTuples(each.get())).value_or(0);
  return changed;
}

}  // namespace lockkeeper::inventory
