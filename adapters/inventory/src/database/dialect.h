#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "database/backend.h"

namespace lockkeeper::inventory {

// What databases word differently.

/// How many values SQLite binds to one statement, in all its versions.
constexpr std::size_t mostBoundBySqlite = 999;

/// `each`, once for each of `count`, with commas.
std::string repeated(std::string_view each, std::size_t count);

/// The bytes of `expression` as hexadecimal digits; bytesIn() reads them.
std::string hex(Dialect dialect, std::string_view expression);

/// What ends an INSERT that leaves a row which is there already as it is, and does not count it as changed.
std::string unlessThere(Dialect dialect, const std::string& table, const std::string& key);

/// What stands in an INSERT before the assignments to a row that is there already.
std::string ifThere(Dialect dialect, const std::string& key);

/// What ends a SELECT whose row nobody else shall write until the transaction ends.
std::string_view forUpdate(Dialect dialect);

/// What an index can be searched for: the value of `expression` when the statement first needs it.
std::string once(Dialect dialect, const std::string& expression);

/// What stands for the time of a new row of the ledger.
std::string timeOfRow(const Transaction& transaction, Dialect dialect);

/// What hex() has written. Poco cuts other bytes that it reads from SQLite at their first NUL.
std::string bytesIn(const mysql::SqlValue& hexadecimal);

/// A whole number, also where SQLite does not tell Poco that it is one, and a sum, which servers return as a
/// decimal.
std::int64_t numberIn(const mysql::SqlValue& value);

}  // namespace lockkeeper::inventory
