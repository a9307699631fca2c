#pragma once

#include <Poco/Data/Session.h>
#include <Poco/Exception.h>
#include <Poco/Version.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "lockkeeper/mysql/row_database.h"
#include "lockkeeper/rows/poco_statements.h"

// VersionedRow on sessions of Poco::Data with MySQL or MariaDB.

#define LOCKKEEPER_JOIN(a, b) a##b
#define LOCKKEEPER_JOIN_VALUES(a, b) LOCKKEEPER_JOIN(a, b)
#define LOCKKEEPER_POCO_NAMESPACE LOCKKEEPER_JOIN_VALUES(poco_, POCO_VERSION)

namespace lockkeeper::mysql {

/// Contains the version in its name, so that parts of a program that use different versions do not share
/// these functions.
inline namespace LOCKKEEPER_POCO_NAMESPACE {

using lockkeeper::executeOn;
using lockkeeper::selectRow;
using lockkeeper::selectRows;

/// A transaction on the application's own session, which must not have one open. Afterwards the session is in
/// autocommit mode. It uses only the rollback of Poco's own transactions: Poco's begin() leaves autocommit
/// off, and after a failed COMMIT it never begins another one.
class PocoRowTransaction {
 public:
  /// Begins the transaction. Throws Poco's exceptions.
  explicit PocoRowTransaction(Poco::Data::Session session) : session_(std::move(session)) {
    if (session_.isTransaction()) throw Poco::InvalidAccessException("the session has an open transaction");
    session_ << "SET autocommit = 0", Poco::Data::Keywords::now;
  }
  PocoRowTransaction(const PocoRowTransaction&) = delete;
  PocoRowTransaction& operator=(const PocoRowTransaction&) = delete;
  ~PocoRowTransaction() {
    try {
      if (open_) session_.rollback();
      session_ << "SET autocommit = 1", Poco::Data::Keywords::now;
    } catch (const std::exception&) {
      // The session is broken, and its server rolls back.
    }
  }

  /// As RowTransaction says.
  std::optional<SqlRow> select(const std::string& statement, const SqlRow& values) {
    return selectRow(session_, statement, values);
  }
  /// As RowTransaction says.
  std::size_t execute(const std::string& statement, const SqlRow& values) {
    return executeOn(session_, statement, values);
  }
  /// If it throws, it is unknown whether the database has committed.
  void commit() {
    session_ << "COMMIT", Poco::Data::Keywords::now;
    open_ = false;
  }
  /// The session, for the application's own statements.
  Poco::Data::Session& session() { return session_; }

 private:
  Poco::Data::Session session_;
  bool open_ = true;
};

/// VersionedRow's database on one MySQL or MariaDB session. Use it on one thread at a time.
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
}  // namespace lockkeeper::mysql

#undef LOCKKEEPER_POCO_NAMESPACE
#undef LOCKKEEPER_JOIN_VALUES
#undef LOCKKEEPER_JOIN
