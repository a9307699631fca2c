#include "database/postgres/literals.h"

#include <array>
#include <charconv>
#include <variant>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/libpq/rows.h"

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

}  // namespace

std::string withLiterals(const std::string& statement, const mysql::SqlRow& values) {
  return libpq::withParameters(statement, values.size(),
                               [&](std::size_t index) { return literalOf(values[index]); });
}

mysql::SqlRow sqlRowIn(const libpq::Result& result, std::size_t row) {
  mysql::SqlRow values;
  values.reserve(result.columns());
  for (std::size_t column = 0; column < result.columns(); ++column)
    values.push_back(libpq::valueIn(result, row, column));
  return values;
}

std::size_t changedBy(const std::vector<libpq::Result>& results) {
  std::size_t changed = 0;
  for (const libpq::Result& each : results) changed += each.changed();
  return changed;
}

}  // namespace lockkeeper::inventory
