#include "lockkeeper/libpq/result.h"

#include <libpq-fe.h>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::libpq {

void Result::Clear::operator()(pg_result* result) const { PQclear(result); }

bool Result::isFault() const {
  const auto status = PQresultStatus(get());
  return status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK;
}

std::size_t Result::rows() const { return static_cast<std::size_t>(PQntuples(get())); }

std::size_t Result::columns() const { return static_cast<std::size_t>(PQnfields(get())); }

unsigned Result::typeOf(std::size_t column) const { return PQftype(get(), static_cast<int>(column)); }

bool Result::isNull(std::size_t row, std::size_t column) const {
  return PQgetisnull(get(), static_cast<int>(row), static_cast<int>(column)) != 0;
}

std::string_view Result::text(std::size_t row, std::size_t column) const {
  const int itsRow = static_cast<int>(row);
  const int itsColumn = static_cast<int>(column);
  // The library returns no text for a row or a column that there is not: the answer has another form then.
  const char* const text = PQgetvalue(get(), itsRow, itsColumn);
  if (text == nullptr)
    throw ProtocolError("PostgreSQL answers with fewer rows or columns than were asked for");
  return {text, static_cast<std::size_t>(PQgetlength(get(), itsRow, itsColumn))};
}

std::int64_t Result::number(std::size_t row, std::size_t column) const {
  const std::string_view digits = text(row, column);
  const auto number = wholeNumber<std::int64_t>(digits);
  if (number || isNull(row, column)) return number.value_or(0);
  throw ProtocolError("PostgreSQL answers " + quoted(digits) + " where a whole number was asked for");
}

std::string Result::bytes(std::size_t row, std::size_t column) const {
  const std::string_view digits = text(row, column);
  if (auto bytes = fromHex(digits)) return *std::move(bytes);
  throw ProtocolError("PostgreSQL answers " + quoted(digits) + " where hexadecimal digits were asked for");
}

std::size_t Result::changed() const {
  return wholeNumber<std::size_t>(PQcmdTuples(const_cast<pg_result*>(get()))).value_or(0);
}

std::string_view Result::command() const { return PQcmdStatus(const_cast<pg_result*>(get())); }

}  // namespace lockkeeper::libpq
