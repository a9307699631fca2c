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

/// How ServerRows uses its server.
struct ServerRowsOptions {
  std::size_t sessions = 8;  ///< The most open at once: 1 to 256.
  /// The longest wait for a free session, and for a row: 1 s to 15 s. A transaction is cut off after twice as
  /// long. If the server hears nothing for so long in the middle of a transaction, because its process is
  /// paused or its host is gone, it ends the session and frees the rows.
  std::chrono::seconds operationTimeout{2};
};

/// VersionedRow's database on sessions of lockkeeper's own with a PostgreSQL server, for applications that
/// bring none. Transactions are READ COMMITTED, with the time zone UTC, and find tables in one schema,
/// whatever the server's defaults are. Sessions are opened when needed, and used only with a server that
/// takes writes; when it has become a standby, its sessions are closed and the primary is looked for again.
/// Also behind a pooler that gives transactions to sessions of its own. Thread-safe. After fork() the child's
/// copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
///
/// All functions throw StoreUnavailable (nothing has changed) and ConfigError, commit() also OutcomeUnknown.
class LOCKKEEPER_POSTGRES_EXPORT ServerRows {
 public:
  /// `uri` is `postgres://user:password@host[:5432][,host2…]/database` with the parameters `schema`,
  /// `passwordFile`, `socket`, `tls`, `verify`, `caFile`, `certFile` and `keyFile` of VersionDriver. Connects
  /// nowhere yet. Throws ConfigError, and std::invalid_argument for options out of range.
  explicit ServerRows(const StoreUri& uri, const ServerRowsOptions& options = {},
                      const Environment& environment = {});
  ServerRows(const ServerRows&) = delete;
  ServerRows& operator=(const ServerRows&) = delete;
  ~ServerRows();

  /// A RowTransaction on one session, by one thread. Its destructor rolls back unless commit() was called.
  /// When one of its functions has thrown, it is rolled back already, and all that are called later throw
  /// StoreUnavailable; a statement that was refused before it was sent (std::invalid_argument) leaves it
  /// open.
  ///
  /// Whole numbers and floating-point numbers are numbers. All other types, such as NUMERIC, TIMESTAMPTZ,
  /// UUID and BYTEA (as \x and hexadecimal digits), are the text that the server writes and reads for them.
  class LOCKKEEPER_POSTGRES_EXPORT Transaction {
   public:
    Transaction(Transaction&&) noexcept;
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();

    /// The first row, or empty.
    std::optional<SqlRow> select(const std::string& statement, const SqlRow& values);
    /// All rows.
    std::vector<SqlRow> selectAll(const std::string& statement, const SqlRow& values);
    /// How many rows it changed.
    std::size_t execute(const std::string& statement, const SqlRow& values);
    /// OutcomeUnknown when the connection broke: then nobody knows whether the database has committed.
    void commit();

   private:
    friend class ServerRows;
    class State;
    explicit Transaction(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  /// Blocks until a session is free or made. The transaction begins with the first statement.
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
