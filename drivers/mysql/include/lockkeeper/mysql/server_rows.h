#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/mysql/export.h"
#include "lockkeeper/mysql/row_database.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::mysql {

/// How ServerRows uses its server.
struct ServerRowsOptions {
  std::size_t sessions = 8;  ///< How many may be open at once: 1 to 256.
  /// The longest wait for a free session, and for a row: 1 s to 1 h; the server counts whole seconds. A
  /// transaction is cut off after twice this time. If the server receives nothing for this time in the middle
  /// of a transaction, because the process is paused or the host is gone, it ends the session and frees the
  /// rows.
  std::chrono::seconds operationTimeout{2};
  /// A table of the database that the account may read. With it, a new session with a member of a replication
  /// group first asks the group, which a primary that is cut off from the others cannot do. If it is empty,
  /// such a primary is noticed only by an account that may read performance_schema.replication_group_members.
  std::string table{};
};

/// VersionedRow's database on lockkeeper's own sessions with a MariaDB or MySQL server, for applications that
/// have none. Sessions use REPEATABLE READ, UTF-8, the time zone UTC and the sql_mode STRICT_ALL_TABLES,
/// whatever the server's defaults are. They are opened when needed, and only with a server that accepts
/// writes. When the server has become a replica, its sessions are closed and the primary is looked up again.
/// Thread-safe. After fork() the child's copy, and that of a transaction, throws ForkedError and touches no
/// socket; destroying it leaks it on purpose.
///
/// All functions throw StoreUnavailable (nothing has changed) and ConfigError, commit() also OutcomeUnknown.
class LOCKKEEPER_MYSQL_EXPORT ServerRows {
 public:
  /// `uri` is `mysql://user:password@host[:3306][,host2…]/database` with the parameters `passwordFile`,
  /// `socket`, `tls`, `verify`, `caFile`, `certFile` and `keyFile` of mysql+getlock. Connects nowhere yet.
  /// Throws ConfigError, and std::invalid_argument for options out of range.
  ServerRows(const StoreUri& uri, const ServerRowsOptions& options, const Environment& environment = {});
  ServerRows(const ServerRows&) = delete;
  ServerRows& operator=(const ServerRows&) = delete;
  ~ServerRows();

  /// A RowTransaction on one session, for one thread. Its destructor rolls back unless commit() was called.
  /// If one of its functions throws, the transaction is rolled back, and all later calls throw
  /// StoreUnavailable.
  class LOCKKEEPER_MYSQL_EXPORT Transaction {
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
    /// How many rows all of them changed together. One round trip.
    std::size_t execute(std::span<const SqlStatement> statements);
    /// Throws OutcomeUnknown if the connection broke: then it is unknown whether the database has committed.
    void commit();

   private:
    friend class ServerRows;
    class State;
    explicit Transaction(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  /// What a transaction is for.
  enum class Access {
    write,
    /// Statements that only read. Each one stands alone, and sees what was committed when it began.
    read,
    /// Statements that only read and may take long: twice operationTimeout for each. All see what was
    /// committed when the first one began. If one gets no answer in time, no other session is affected, and
    /// isLostSession() does not suggest trying again.
    snapshot,
  };

  /// Blocks until a session is free or opened. The transaction begins with the first statement. Neither the
  /// wait nor the transaction continues after `latest`.
  Transaction begin(Instant latest = Instant::max(), Access access = Access::write);

  /// As RowDatabase says.
  static bool isContention(const std::exception& failure);
  /// Whether the session ended, or its server became a replica, in the middle of a transaction: then the
  /// transaction is undone, and may succeed on another session.
  static bool isLostSession(const std::exception& failure);

  /// The server's name for messages: no user, no password.
  const std::string& display() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::mysql
