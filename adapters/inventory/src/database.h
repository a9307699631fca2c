#pragma once

#include <functional>

#include "database_uri.h"
#include "lockkeeper/environment.h"
#include "transaction.h"

namespace lockkeeper::inventory {

/// The database, and the patience to try a transaction again where that is safe. Thread-safe.
class Database {
 public:
  Database(const DatabaseUri& uri, std::size_t sessions, std::chrono::seconds operationTimeout,
           Environment environment);

  sql::ConnectionPool& pool() { return pool_; }
  Dialect dialect() const { return dialect_; }

  /// Begins; on SQLite with the right to write, so that it never has to be upgraded. Throws as
  /// ConnectionPool::Lease does.
  Transaction begin();

  /// Whether a new transaction may succeed where this exception ended one.
  static bool isContention(const std::exception& failure);

  /// Runs `transaction` until it returns, a few times at most: again after a contention or a lost connection,
  /// when it must have left nothing behind. False when contention lasted. Throws StoreUnavailable and
  /// ConfigError for Poco's exceptions; passes others on.
  bool attempt(const std::function<void()>& transaction);

  /// Like attempt(), but throws StoreUnavailable when contention lasted.
  void run(const std::function<void()>& transaction);

 private:
  const Environment environment_;
  const Dialect dialect_;
  sql::ConnectionPool pool_;
};

}  // namespace lockkeeper::inventory
