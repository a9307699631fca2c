#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "database/backend.h"

namespace lockkeeper::inventory {

/// How many values SQLite binds to one statement, in all its versions.
constexpr std::size_t mostBoundBySqlite = 999;

/// `each`, once for each of `count`, with commas.
std::string repeated(std::string_view each, std::size_t count);

/// What ends an INSERT that leaves a row which is there already as it is, and does not count it as changed.
std::string unlessThere(Dialect dialect, const std::string& table, const std::string& key);

/// What ends a SELECT whose row nobody else shall write until the transaction ends.
std::string_view forUpdate(Dialect dialect);

/// What HEX() has written. Poco cuts other bytes that it reads from SQLite at their first NUL.
std::string bytesIn(const mysql::SqlValue& hexadecimal);

/// A whole number, also where SQLite does not tell Poco that it is one.
std::int64_t numberIn(const mysql::SqlValue& value);

}  // namespace lockkeeper::inventory
