#pragma once

#include "connection_pool.h"

namespace lockkeeper::inventory {

/// BEGIN … COMMIT on one connection, by statements of our own: Poco's begin() leaves a MySQL session with
/// autocommit switched off for its next user.
class Transaction {
 public:
  /// Begins. On SQLite with the right to write, so that it never has to be upgraded.
  explicit Transaction(ConnectionPool& pool);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Rolls back, unless committed.
  ~Transaction();

  Connection& connection() { return lease_.connection(); }

  /// When it throws, whether the database has committed is not known; the connection is closed.
  void commit();

 private:
  void send(const char* statement);

  ConnectionPool::Lease lease_;
  bool open_ = true;
};

}  // namespace lockkeeper::inventory
