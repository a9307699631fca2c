#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/environment.h"
#include "lockkeeper/postgres/export.h"
#include "lockkeeper/rows/row_database.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::postgres {

/// Options of ServerRows.
struct ServerRowsOptions {
  std::size_t sessions = 8;  ///< The most that are open at once: 1 to 256.
  /// The longest wait for a free session, and for a row: 1 s to 15 s. A transaction is ended after twice that
  /// time. If the process is paused in the middle of a transaction, or its host is gone, the server ends the
  /// session after this time and unlocks the rows.
  std::chrono::seconds operationTimeout{2};
};

/// The database of a VersionedRow on PostgreSQL, for applications without sessions of their own. Whatever the
/// server's defaults are, transactions are READ COMMITTED, use the time zone UTC, and find tables in one
/// schema. Sessions are opened when they are needed, on the server that takes the writes. When it becomes a
/// standby, they are closed and the primary is looked for again. Works behind a transaction pooler, such as
/// PgBouncer. Thread-safe. After fork() the child's copy, and that of a transaction, throws ForkedError and
/// touches no socket; destroying it leaks it on purpose.
///
/// All functions throw StoreUnavailable (nothing has changed) and ConfigError; commit() also throws
/// OutcomeUnknown.
class LOCKKEEPER_POSTGRES_EXPORT ServerRows {
 public:
  /// `uri` is `postgres://user:password@host[:5432][,host2…]/database` with the parameters `schema`,
  /// `passwordFile`, `socket`, `tls`, `verify`, `caFile`, `certFile` and `keyFile` of VersionDriver. Does not
  /// connect yet. Throws ConfigError, and std::invalid_argument for options out of range.
  explicit ServerRows(const StoreUri& uri, const ServerRowsOptions& options = {},
                      const Environment& environment = {});
  ServerRows(const ServerRows&) = delete;
  ServerRows& operator=(const ServerRows&) = delete;
  ~ServerRows();

  /// A RowTransaction on one session, for one thread. Its destructor rolls back unless commit() was called.
  /// When a function throws, the transaction is rolled back, and all later calls throw StoreUnavailable. The
  /// exception is std::invalid_argument, for a statement that was not sent: the transaction stays open.
  ///
  /// Integers and floating-point numbers are read as numbers. All other types, such as NUMERIC, TIMESTAMPTZ,
  /// UUID and BYTEA (as `\x` and hexadecimal digits), are the text that the server writes and reads for them.
  class LOCKKEEPER_POSTGRES_EXPORT Transaction {
   public:
    Transaction(Transaction&&) noexcept;
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();

    /// The first row of the result; empty if there is none.
    std::optional<SqlRow> select(const std::string& statement, const SqlRow& values);
    /// All rows of the result.
    std::vector<SqlRow> selectAll(const std::string& statement, const SqlRow& values);
    /// Returns how many rows were changed.
    std::size_t execute(const std::string& statement, const SqlRow& values);
    /// Throws OutcomeUnknown if the connection breaks: then it is unknown whether the database has committed.
    void commit();

   private:
    friend class ServerRows;
    class State;
    explicit Transaction(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  /// Blocks until a session is free or opened. The transaction begins with the first statement.
  Transaction begin();

  /// As RowDatabase says.
  static bool isContention(const std::exception& failure);

  /// The server's name for messages: no user, no password.
  const std::string& display() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::postgres
