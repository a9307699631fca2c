#pragma once

#include <Poco/Data/Session.h>
#include <Poco/Exception.h>
#include <Poco/Version.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "lockkeeper/postgres/row_statement.h"
#include "lockkeeper/rows/poco_statements.h"
#include "lockkeeper/rows/row_database.h"

// VersionedRow on sessions of Poco::Data with PostgreSQL.

#define LOCKKEEPER_JOIN(a, b) a##b
#define LOCKKEEPER_JOIN_VALUES(a, b) LOCKKEEPER_JOIN(a, b)
#define LOCKKEEPER_POCO_NAMESPACE LOCKKEEPER_JOIN_VALUES(poco_, POCO_VERSION)

namespace lockkeeper::postgres {

/// Contains Poco's version in its name, so that parts of a program that use different versions do not share
/// these functions.
inline namespace LOCKKEEPER_POCO_NAMESPACE {

/// Replaces each '?' by a number. Reads whole numbers as numbers, and all other types as the text that the
/// server writes for them.
inline PocoDialect pocoDialect() {
  using Poco::Data::MetaColumn;
  return {.form = numbered,
          .nameQuote = '"',
          .textType = "TEXT",
          .needsText = [](MetaColumn::ColumnDataType type) {
            return type > MetaColumn::FDT_UINT64 && type != MetaColumn::FDT_STRING;
          }};
}

/// A transaction on the application's own session, which must not have one open. Its isolation level is that
/// of the session. After a statement has failed, commit() throws, because the server would roll back and
/// answer COMMIT without an error. If the connection is lost during the transaction, make a new session: Poco
/// reports an open transaction on the old one for ever, even after reconnect().
class PocoRowTransaction {
 public:
  /// Begins it. Throws Poco's exceptions.
  explicit PocoRowTransaction(Poco::Data::Session session) : session_(std::move(session)) {
    if (session_.isTransaction()) throw Poco::InvalidAccessException("the session has an open transaction");
    session_.begin();
  }
  PocoRowTransaction(const PocoRowTransaction&) = delete;
  PocoRowTransaction& operator=(const PocoRowTransaction&) = delete;
  ~PocoRowTransaction() {
    try {
      if (open_) session_.rollback();
    } catch (const std::exception&) {
      // The session is broken, and its server rolls back.
    }
  }

  /// As RowTransaction says.
  std::optional<SqlRow> select(const std::string& statement, const SqlRow& values) {
    hasFailed_ = true;
    auto row = selectRow(session_, statement, values, pocoDialect());
    hasFailed_ = false;
    return row;
  }
  /// As RowTransaction says.
  std::size_t execute(const std::string& statement, const SqlRow& values) {
    hasFailed_ = true;
    const std::size_t changed = executeOn(session_, statement, values, pocoDialect());
    hasFailed_ = false;
    return changed;
  }
  /// If it throws, it is unknown whether the database has committed, unless a statement has failed before.
  void commit() {
    if (hasFailed_) throw Poco::InvalidAccessException("a statement has failed, and with it the transaction");
    // The server would answer the COMMIT of a transaction that one of the application's own statements has
    // made fail, and roll back.
    if (isLent_) session_ << "SELECT 1", Poco::Data::Keywords::now;
    session_.commit();
    open_ = false;
  }
  /// For the application's own statements. If one of them fails, commit() throws.
  Poco::Data::Session& session() {
    isLent_ = true;
    return session_;
  }

 private:
  Poco::Data::Session session_;
  bool open_ = true;
  bool hasFailed_ = false;  // The last statement failed.
  bool isLent_ = false;     // The application may have run statements.
};

/// The database of a VersionedRow on one PostgreSQL session. For one thread at a time.
class PocoRows {
 public:
  /// Sends nothing.
  explicit PocoRows(Poco::Data::Session session) : session_(std::move(session)) {}

  /// As RowDatabase says.
  PocoRowTransaction begin() { return PocoRowTransaction(session_); }
  /// As RowDatabase says.
  static bool isContention(const std::exception& failure) {
    const auto* known = dynamic_cast<const Poco::Exception*>(&failure);
    return known != nullptr && tellsContention(known->message());
  }

 private:
  Poco::Data::Session session_;
};

}  // namespace LOCKKEEPER_POCO_NAMESPACE
}  // namespace lockkeeper::postgres

#undef LOCKKEEPER_POCO_NAMESPACE
#undef LOCKKEEPER_JOIN_VALUES
#undef LOCKKEEPER_JOIN
