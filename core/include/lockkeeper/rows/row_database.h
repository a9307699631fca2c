#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What VersionedRow needs of the application's SQL database, whichever client library it uses. The components
// mysql and postgres implement it on their own sessions (server_rows.h) and on sessions of Poco::Data
// (poco_rows.h).

namespace lockkeeper {

/// The value of a column: NULL, a number, or bytes. Other types are read and written as the text that the
/// database uses for them. Through Poco, decimals are text if a double cannot hold all their digits.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;
/// The columns of a row, in the order of the statement.
using SqlRow = std::vector<SqlValue>;

/// A statement with a '?' for each of its values.
struct SqlStatement {
  std::string text;
  SqlRow values;
};

/// An open transaction. Its destructor rolls back unless commit() was called. On every database, a '?' in a
/// statement stands for a value, and names may be in backticks. Values are bound, never inserted into the
/// text.
template <class T>
concept RowTransaction = requires(T& transaction, const std::string& statement, const SqlRow& values) {
  /// The first row of the result; empty if there is none.
  { transaction.select(statement, values) } -> std::same_as<std::optional<SqlRow>>;
  /// Returns how many rows were changed.
  { transaction.execute(statement, values) } -> std::convertible_to<std::size_t>;
  transaction.commit();
};

template <class T>
concept RowDatabase = requires(T& database, const std::exception& failure) {
  { database.begin() } -> RowTransaction;
  /// Whether a new transaction may succeed where this one failed, as after a deadlock, or after waiting for a
  /// row for too long.
  { database.isContention(failure) } -> std::convertible_to<bool>;
};

}  // namespace lockkeeper
