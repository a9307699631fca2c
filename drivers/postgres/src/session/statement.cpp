#include "session/statement.h"

#include <libpq-fe.h>

#include <charconv>

#include "lockkeeper/error.h"

namespace lockkeeper::postgres {
namespace {

template <class Number>
std::optional<Number> numberIn(std::string_view text, int base = 10) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

void Result::Clear::operator()(pg_result* result) const { PQclear(result); }

std::size_t Result::rows() const { return static_cast<std::size_t>(PQntuples(result_.get())); }

std::size_t Result::columns() const { return static_cast<std::size_t>(PQnfields(result_.get())); }

unsigned Result::typeOf(std::size_t column) const { return PQftype(result_.get(), static_cast<int>(column)); }

bool Result::isNull(std::size_t row, std::size_t column) const {
  return PQgetisnull(result_.get(), static_cast<int>(row), static_cast<int>(column)) != 0;
}

std::string_view Result::text(std::size_t row, std::size_t column) const {
  const int itsRow = static_cast<int>(row);
  const int itsColumn = static_cast<int>(column);
  // The library returns no text for a row or a column that there is not: the answer has another form then.
  const char* const text = PQgetvalue(result_.get(), itsRow, itsColumn);
  if (text == nullptr)
    throw ProtocolError("PostgreSQL answers with fewer rows or columns than were asked for");
  return {text, static_cast<std::size_t>(PQgetlength(result_.get(), itsRow, itsColumn))};
}

std::int64_t Result::number(std::size_t row, std::size_t column) const {
  const std::string_view digits = text(row, column);
  const auto number = numberIn<std::int64_t>(digits);
  if (number || isNull(row, column)) return number.value_or(0);
  throw ProtocolError("PostgreSQL answers " + quoted(digits) + " where a whole number was asked for");
}

std::string Result::bytes(std::size_t row, std::size_t column) const {
  const std::string_view digits = text(row, column);
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto byte = numberIn<unsigned char>(digits.substr(i, 2), 16);
    if (!byte || digits.size() % 2 != 0)
      throw ProtocolError("PostgreSQL answers " + quoted(digits) +
                          " where hexadecimal digits were asked for");
    bytes.push_back(static_cast<char>(*byte));
  }
  return bytes;
}

std::size_t Result::changed() const { return numberIn<std::size_t>(PQcmdTuples(result_.get())).value_or(0); }

}  // namespace lockkeeper::postgres
