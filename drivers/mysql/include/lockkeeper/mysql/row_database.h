#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockkeeper/mysql/export.h"

// The application's own database, as VersionedRow needs it: whatever SQL library it uses, in whatever
// version. poco_rows.h has it ready for sessions of Poco::Data.

namespace lockkeeper::mysql {

/// The value of a column: NULL, a number, or bytes. Columns of other types are read and written as text;
/// through Poco, this includes decimals whose digits a double cannot hold.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;
/// Columns, in the order of the statement.
using SqlRow = std::vector<SqlValue>;

/// A statement in which a '?' stands for each of its values.
struct SqlStatement {
  std::string text;
  SqlRow values;
};

/// An open transaction; its destructor rolls back unless commit() was called. In a statement, a '?' stands
/// for each value. Values are bound and never pasted into the text.
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

/// Whether the text of an exception of Poco::Data::MySQL describes such a failure (errors 1020, 1205, 1213,
/// 1317).
LOCKKEEPER_MYSQL_EXPORT bool tellsContention(const std::string& message);

}  // namespace lockkeeper::mysql
