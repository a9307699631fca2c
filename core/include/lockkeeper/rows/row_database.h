#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What VersionedRow needs of the application's own SQL database, whichever library that uses. The drivers of
// MySQL and PostgreSQL implement it on sessions of their own (server_rows.h) and on those of Poco::Data
// (poco_rows.h).

namespace lockkeeper {

/// The value of a column: NULL, a number, or bytes. Columns of other types are read and written as the text
/// that the database writes for them; through Poco, this includes decimals whose digits a double cannot hold.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;
/// Columns, in the order of the statement.
using SqlRow = std::vector<SqlValue>;

/// A statement in which a '?' stands for each of its values.
struct SqlStatement {
  std::string text;
  SqlRow values;
};

/// An open transaction; its destructor rolls back unless commit() was called. In a statement, a '?' stands
/// for each value, and names may be in backticks, on each database. Values are bound and never pasted into
/// the text.
template <class T>
concept RowTransaction = requires(T& transaction, const std::string& statement, const SqlRow& values) {
  /// The first row of the result; empty when there is none.
  { transaction.select(statement, values) } -> std::same_as<std::optional<SqlRow>>;
  /// How many rows were changed.
  { transaction.execute(statement, values) } -> std::convertible_to<std::size_t>;
  transaction.commit();
};

template <class T>
concept RowDatabase = requires(T& database, const std::exception& failure) {
  { database.begin() } -> RowTransaction;
  /// Whether a new transaction may succeed where this one failed, as after a deadlock or too long a wait for
  /// a row.
  { database.isContention(failure) } -> std::convertible_to<bool>;
};

}  // namespace lockkeeper
