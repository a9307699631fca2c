#pragma once

#include "lockkeeper/sql/connection_pool.h"

namespace lockkeeper::sql {

/// BEGIN … COMMIT on one connection, by statements of our own: Poco's begin() leaves a MySQL session with
/// autocommit switched off for its next user.
class Transaction {
 public:
  /// `begin` is the statement that begins it. Throws as ConnectionPool::Lease does.
  explicit Transaction(ConnectionPool& pool, const char* begin = "START TRANSACTION");
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Rolls back, unless committed.
  ~Transaction();

  Poco::Data::Session& sql() { return lease_.sql(); }

  /// When it throws, whether the database has committed is not known; the connection is closed.
  void commit();

 private:
  ConnectionPool::Lease lease_;
  bool open_ = true;
};

}  // namespace lockkeeper::sql
