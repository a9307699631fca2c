#include "database/postgres/literals.h"

#include <array>
#include <charconv>
#include <stdexcept>
#include <variant>

#include "lockkeeper/base/hex.h"

namespace lockkeeper::inventory {
namespace {

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

mysql::SqlRow sqlRowIn(const libpq::Result& result, std::size_t row) {
  mysql::SqlRow values;
  values.reserve(result.columns());
  for (std::size_t column = 0; column < result.columns(); ++column) {
    if (result.isNull(row, column)) {
      values.emplace_back();
    } else if (isWholeNumber(result.typeOf(column))) {
      values.emplace_back(result.number(row, column));
    } else {
      values.emplace_back(std::string(result.text(row, column)));
    }
  }
  return values;
}

std::size_t changedBy(const std::vector<libpq::Result>& results) {
  std::size_t changed = 0;
  for (const libpq::Result& each : results) changed += each.changed();
  return changed;
}

}  // namespace lockkeeper::inventory
