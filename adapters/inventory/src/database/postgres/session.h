#pragma once

#include <memory>
#include <string>
#include <vector>

#include "database/postgres/log_in.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/mysql/row_database.h"

namespace lockkeeper::inventory {

/// One session with a PostgreSQL server, whose calls block until their deadline and no longer. Never
/// reconnects. One thread at a time.
class PostgresSession {
 public:
  PostgresSession(LoggedIn logIn, std::string display, std::shared_ptr<Clock> clock);
  PostgresSession(const PostgresSession&) = delete;
  PostgresSession& operator=(const PostgresSession&) = delete;
  ~PostgresSession() = default;

  /// Sends the statements, with ';' between them, in one round trip, and returns the result of each. One that
  /// fails ends the transaction. Throws what throwFault() says; LostSession, too, when there is no answer by
  /// `deadline`: then nobody knows what the server does.
  std::vector<PostgresResult> ask(const std::string& statements, Instant deadline);

  /// Whether it answers as far as is known, and nothing has come from it that nobody asked for, such as its
  /// end.
  bool usable() const;
  bool isDirect() const { return isDirect_; }
  /// Whether the server has warned, since it was last asked, that a commit may not have reached a standby.
  bool hasWarned() const { return hasWarned_; }

 private:
  [[noreturn]] void lose(const std::string& words);

  const PostgresConnection connection_;
  const bool isDirect_;
  const std::string display_;
  const std::shared_ptr<Clock> clock_;
  bool isLost_ = false;
  bool hasWarned_ = false;
};

/// The statement with a literal in the place of each '?' that stands outside of quotes; names stand between
/// the server's own quotes in place of '`'. A literal has no byte that could end it, whatever the value is.
std::string withLiterals(const std::string& statement, const mysql::SqlRow& values);

/// A row of the result. Whole numbers are numbers, everything else is text.
mysql::SqlRow sqlRowIn(const pg_result* result, int row);

/// How many rows the statements have changed together.
std::size_t changedBy(const std::vector<PostgresResult>& results);

}  // namespace lockkeeper::inventory
