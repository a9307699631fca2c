#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/inventory/stock_options.h"
#include "lockkeeper/mysql/row_database.h"
#include "lockkeeper/mysql/server_rows.h"

namespace lockkeeper::inventory {

enum class Dialect { sqlite, mysql, postgres };

/// On SQLite, `write` begins with the right to write, so that it never has to be upgraded.
using Access = mysql::ServerRows::Access;

/// What the failure of a transaction, which is undone by it, means for another attempt.
enum class Fault {
  contention,   ///< Others stood in the way: again.
  lostSession,  ///< Again, on another session.
  final,        ///< The same would happen again.
};

/// An open transaction on whichever database; its destructor rolls back unless commit() was called. Throws
/// StoreUnavailable and ConfigError.
class Transaction {
 public:
  class Session {
   public:
    virtual ~Session() = default;
    virtual std::optional<mysql::SqlRow> select(const std::string& statement,
                                                const mysql::SqlRow& values) = 0;
    virtual std::vector<mysql::SqlRow> selectAll(const std::string& statement,
                                                 const mysql::SqlRow& values) = 0;
    virtual std::size_t execute(const std::string& statement, const mysql::SqlRow& values) = 0;
    virtual std::size_t execute(std::span<const mysql::SqlStatement> statements) = 0;
    virtual void commit() = 0;
    virtual std::string clock() const = 0;
  };

  explicit Transaction(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  std::optional<mysql::SqlRow> select(const std::string& statement, const mysql::SqlRow& values) {
    return session_->select(statement, values);
  }
  std::vector<mysql::SqlRow> selectAll(const std::string& statement, const mysql::SqlRow& values) {
    return session_->selectAll(statement, values);
  }
  std::size_t execute(const std::string& statement, const mysql::SqlRow& values) {
    return session_->execute(statement, values);
  }
  /// How many rows they changed together: in one round trip where there are round trips.
  std::size_t execute(std::span<const mysql::SqlStatement> statements) {
    return session_->execute(statements);
  }
  /// OutcomeUnknown when nobody knows whether the database has committed.
  void commit() { session_->commit(); }
  /// An expression for the time by the database's clock, in ms since 1970.
  std::string clock() const { return session_->clock(); }

 private:
  std::unique_ptr<Session> session_;
};

/// A database. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual Dialect dialect() const = 0;
  /// For messages: no user, no password.
  virtual const std::string& display() const = 0;

  /// Waits for a session. Nothing of it goes on after `latest`, except what SQLite does by itself.
  virtual Transaction begin(Access access, Instant latest) = 0;
  virtual Fault faultOf(const std::exception& failure) const = 0;
};

/// Connects nowhere yet. Throws ConfigError that says what is wrong without repeating a secret.
std::unique_ptr<Backend> makeBackend(std::string_view uri, const StockOptions& options);

std::unique_ptr<Backend> makeServerBackend(std::string_view uri, const StockOptions& options);
std::unique_ptr<Backend> makePostgresBackend(std::string_view uri, const StockOptions& options);
std::unique_ptr<Backend> makeSqliteBackend(std::string_view uri, const StockOptions& options);

}  // namespace lockkeeper::inventory
