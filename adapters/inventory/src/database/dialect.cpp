#include "database/dialect.h"

#include <charconv>
#include <variant>

namespace lockkeeper::inventory {

std::string repeated(std::string_view each, std::size_t count) {
  std::string text;
  text.reserve((each.size() + 1) * count);
  for (std::size_t i = 0; i < count; ++i) text.append(i == 0 ? "" : ",").append(each);
  return text;
}

std::string hex(Dialect dialect, std::string_view expression) {
  if (dialect == Dialect::postgres) return "encode(" + std::string(expression) + ", 'hex')";
  return "HEX(" + std::string(expression) + ")";
}

std::string unlessThere(Dialect dialect, const std::string& table, const std::string& key) {
  if (dialect != Dialect::mysql) return " ON CONFLICT (" + key + ") DO NOTHING";
  const std::string column = key.substr(0, key.find(','));
  return " ON DUPLICATE KEY UPDATE " + column + " = " + table + "." + column;
}

std::string ifThere(Dialect dialect, const std::string& key) {
  return dialect == Dialect::mysql ? " ON DUPLICATE KEY UPDATE "
                                   : " ON CONFLICT (" + key + ") DO UPDATE SET ";
}

// SQLite's BEGIN IMMEDIATE keeps the whole database.
std::string_view forUpdate(Dialect dialect) { return dialect == Dialect::sqlite ? "" : " FOR UPDATE"; }

// PostgreSQL searches no index for what may change from row to row.
std::string once(Dialect dialect, const std::string& expression) {
  return dialect == Dialect::postgres ? "(SELECT " + expression + ")" : expression;
}

std::string timeOfRow(const Transaction& transaction, Dialect dialect) {
  return dialect == Dialect::sqlite ? transaction.clock() : "DEFAULT";
}

std::string bytesIn(const mysql::SqlValue& hexadecimal) {
  const auto& digits = std::get<std::string>(hexadecimal);
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::int64_t numberIn(const mysql::SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  std::int64_t number = 0;
  const auto& digits = std::get<std::string>(value);
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace lockkeeper::inventory
