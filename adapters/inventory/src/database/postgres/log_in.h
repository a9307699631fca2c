#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "database/postgres/server.h"
#include "lockkeeper/base/clock.h"

struct pg_conn;
struct pg_result;

namespace lockkeeper::inventory {

struct FinishConnection {
  void operator()(pg_conn* connection) const;
};
using PostgresConnection = std::unique_ptr<pg_conn, FinishConnection>;

struct ClearResult {
  void operator()(pg_result* result) const;
};
using PostgresResult = std::unique_ptr<pg_result, ClearResult>;

/// Calls on a connection that does not block, each of which ends at its deadline.
/// @{

/// Waits until the connection's socket is ready for one of these events of poll(). False when it is not by
/// then.
bool awaitSocket(pg_conn* connection, short events, const Clock& clock, Instant until);
/// Sends what libpq still holds. False when the connection is lost, or time is up.
bool flushTo(pg_conn* connection, const Clock& clock, Instant until);
/// Reads the next result; null at the end of a request's results, and when `isLate` is set by it.
PostgresResult nextOf(pg_conn* connection, const Clock& clock, Instant until, bool& isLate);
/// @}

/// A connection that is logged in, to a server that takes writes.
struct LoggedIn {
  PostgresConnection connection;
  bool isDirect = false;  ///< No pooler gives our statements to sessions of its own.
};

/// The settings that make a transaction mean what our statements say, whatever the server's defaults are, and
/// that bound how long the server waits for rows, works on a statement, and waits for us while a transaction
/// is open: a list for SELECT. `isLocal`: until the end of the transaction.
std::string pinsOf(const PostgresServer& server, std::chrono::seconds operationTimeout, bool isLocal);

/// Logs in, and pins the session unless it is a pooler's. Blocks until `until`, and for the lookup of the
/// host's name; addresses that do not answer share the time. Throws ConfigError for what the administrator
/// must mend, else StoreUnavailable; NotPrimary for a server that takes no writes.
LoggedIn logInTo(const PostgresServer& server, std::chrono::seconds operationTimeout, const Clock& clock,
                 Instant until);

}  // namespace lockkeeper::inventory
