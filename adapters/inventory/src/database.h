#pragma once

#include <functional>

#include "connection_pool.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::inventory {

/// The database, and the patience to try a transaction again where that is safe. Thread-safe.
class Database {
 public:
  Database(const DatabaseUri& uri, std::size_t sessions, std::chrono::seconds operationTimeout,
           Environment environment);

  ConnectionPool& pool() { return pool_; }

  /// Runs `transaction` until it returns, a few times at most: again after a contention or a lost connection,
  /// when it must have left nothing behind. False when contention lasted. Throws StoreUnavailable and
  /// ConfigError for Poco's exceptions; passes others on.
  bool attempt(const std::function<void()>& transaction);

  /// Like attempt(), but throws StoreUnavailable when contention lasted.
  void run(const std::function<void()>& transaction);

 private:
  void pause(int attempt);

  const Environment environment_;
  ConnectionPool pool_;
};

}  // namespace lockkeeper::inventory
