#pragma once

#include <Poco/Data/LOB.h>
#include <Poco/Data/MetaColumn.h>
#include <Poco/Data/RecordSet.h>
#include <Poco/Data/Session.h>
#include <Poco/Data/Statement.h>
#include <Poco/Dynamic/Var.h>
#include <Poco/Exception.h>
#include <Poco/Nullable.h>
#include <Poco/Version.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lockkeeper/rows/row_database.h"

// Statements on sessions of Poco::Data, for the drivers' poco_rows.h. Like lockkeeper/poco/, these headers
// need Poco. They are compiled with the application's own, and no library of lockkeeper contains them.

#define LOCKKEEPER_JOIN(a, b) a##b
#define LOCKKEEPER_JOIN_VALUES(a, b) LOCKKEEPER_JOIN(a, b)
#define LOCKKEEPER_POCO_NAMESPACE LOCKKEEPER_JOIN_VALUES(poco_, POCO_VERSION)

namespace lockkeeper {

/// Contains Poco's version in its name, so that parts of a program that use different versions do not share
/// these functions.
inline namespace LOCKKEEPER_POCO_NAMESPACE {

/// The form of a database's statements, and which of its columns Poco cannot read exactly.
struct PocoDialect {
  /// Translates a statement with `values` question marks into the database's form; null: no translation.
  std::string (*form)(const std::string& statement, std::size_t values) = nullptr;
  char nameQuote = '`';
  const char* textType = "CHAR";
  /// Whether Poco reads a column of this type inexactly: it turns decimals into doubles, and drops fractions
  /// of a second. Such a column is read as text.
  bool (*needsText)(Poco::Data::MetaColumn::ColumnDataType type) =
      [](Poco::Data::MetaColumn::ColumnDataType type) {
        return type == Poco::Data::MetaColumn::FDT_DOUBLE || type == Poco::Data::MetaColumn::FDT_TIMESTAMP ||
               type == Poco::Data::MetaColumn::FDT_TIME;
      };
};

/// Converts what Poco has read from a column.
inline SqlValue toSqlValue(const Poco::Dynamic::Var& value) {
  if (value.isEmpty()) return std::monostate();
  if (value.isInteger()) return value.convert<Poco::Int64>();
  if (value.isNumeric()) return value.convert<double>();
  if (value.type() != typeid(Poco::Data::BLOB)) return value.convert<std::string>();
  const auto& bytes = value.extract<Poco::Data::BLOB>();
  return std::string(bytes.begin(), bytes.end());
}

/// A statement whose values are bound. It is not executed yet.
inline Poco::Data::Statement bound(Poco::Data::Session& session, const std::string& text,
                                   const SqlRow& values, const PocoDialect& dialect) {
  using Poco::Data::Keywords::bind;
  Poco::Data::Statement statement(session);
  statement << (dialect.form == nullptr ? text : dialect.form(text, values.size()));
  for (const SqlValue& value : values) {
    std::visit(
        [&](const auto& plain) {
          if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, std::monostate>) {
            statement, bind(Poco::Nullable<Poco::Int64>());
          } else {
            statement, bind(plain);
          }
        },
        value);
  }
  return statement;
}

/// The number that `text` stands for, if a double can hold all its digits; otherwise the text.
inline SqlValue toNumber(std::string text) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != std::string::npos) return text;
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.find_first_of("eE") != std::string::npos) return number;
  std::array<char, 400> shortest{};
  const auto end =
      std::to_chars(shortest.data(), shortest.data() + shortest.size(), number, std::chars_format::fixed);
  std::string plain = text;
  if (plain.find('.') != std::string::npos) {
    plain.erase(plain.find_last_not_of('0') + 1);
    if (plain.back() == '.') plain.pop_back();
  }
  if (plain == std::string(shortest.data(), end.ptr)) return number;
  return text;
}

/// A statement for the same rows that reads inexact columns as text; empty if there are none.
inline std::string selectText(const Poco::Data::RecordSet& rows, const std::string& text,
                              const PocoDialect& dialect) {
  std::string columns;
  bool any = false;
  for (std::size_t i = 0; i < rows.columnCount(); ++i) {
    const std::string name = dialect.nameQuote + rows.columnName(i) + dialect.nameQuote;
    const bool asText = dialect.needsText(rows.columnType(i));
    any = any || asText;
    columns +=
        (i == 0 ? "" : ", ") + (asText ? "CAST(" + name + " AS " + dialect.textType + ") AS " + name : name);
  }
  return any ? "SELECT " + columns + " FROM (" + text + "\n) AS exactly" : "";
}

/// RowTransaction's select() for any session. If there are columns that Poco reads inexactly, a second
/// statement reads the row again, with these columns as text. Throws Poco's exceptions.
inline std::optional<SqlRow> selectRow(Poco::Data::Session& session, const std::string& text,
                                       const SqlRow& values, const PocoDialect& dialect = {}) {
  using Poco::Data::MetaColumn;
  Poco::Data::Statement statement = bound(session, text, values, dialect);
  if (statement.execute() == 0) return std::nullopt;
  const Poco::Data::RecordSet rows(statement);
  if (const std::string exactly = selectText(rows, text, dialect); !exactly.empty()) {
    // The second statement could return several rows in another order.
    if (rows.rowCount() > 1) {
      throw Poco::InvalidArgumentException(
          "a statement that selects decimals or times must select one row: end it with LIMIT 1: " + text);
    }
    Poco::Data::Statement again = bound(session, exactly, values, dialect);
    if (again.execute() == 0) return std::nullopt;
    const Poco::Data::RecordSet texts(again);
    SqlRow row;
    for (std::size_t column = 0; column < texts.columnCount(); ++column) {
      SqlValue value = toSqlValue(texts.value(column, 0));
      const auto type = rows.columnType(column);
      const bool number = type == MetaColumn::FDT_DOUBLE || type == MetaColumn::FDT_FLOAT;
      const auto* digits = std::get_if<std::string>(&value);
      row.push_back(number && digits != nullptr ? toNumber(*digits) : std::move(value));
    }
    return row;
  }
  SqlRow row;
  for (std::size_t column = 0; column < rows.columnCount(); ++column)
    row.push_back(toSqlValue(rows.value(column, 0)));
  return row;
}

/// All rows of a statement that selects integers and text only, for any session. Throws Poco's exceptions.
inline std::vector<SqlRow> selectRows(Poco::Data::Session& session, const std::string& text,
                                      const SqlRow& values, const PocoDialect& dialect = {}) {
  Poco::Data::Statement statement = bound(session, text, values, dialect);
  statement.execute();
  const Poco::Data::RecordSet all(statement);
  std::vector<SqlRow> rows(all.rowCount());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < all.columnCount(); ++column) {
      rows[row].push_back(toSqlValue(all.value(column, row)));
    }
  }
  return rows;
}

/// RowTransaction's execute() for any session. Throws Poco's exceptions.
inline std::size_t executeOn(Poco::Data::Session& session, const std::string& text, const SqlRow& values,
                             const PocoDialect& dialect = {}) {
  return bound(session, text, values, dialect).execute();
}

}  // namespace LOCKKEEPER_POCO_NAMESPACE
}  // namespace lockkeeper

#undef LOCKKEEPER_POCO_NAMESPACE
#undef LOCKKEEPER_JOIN_VALUES
#undef LOCKKEEPER_JOIN
