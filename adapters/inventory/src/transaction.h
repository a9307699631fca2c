#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>

#include "lockkeeper/mysql/row_database.h"
#include "lockkeeper/sql/transaction.h"

namespace lockkeeper::inventory {

/// Thrown by Transaction::commit() when the connection broke: whether the database has committed is not
/// known. Its cause is the exception that is being handled when it is made.
class CommitInDoubt final : public std::exception {
 public:
  const char* what() const noexcept override { return "the connection broke during COMMIT"; }

  /// For who has found out that nothing was committed.
  [[noreturn]] void rethrowCause() const { std::rethrow_exception(cause_); }

 private:
  std::exception_ptr cause_ = std::current_exception();
};

/// A transaction that VersionedRow can work in as well.
class Transaction final : public sql::Transaction {
 public:
  using sql::Transaction::Transaction;

  std::optional<mysql::SqlRow> select(const std::string& statement, const mysql::SqlRow& values);
  std::size_t execute(const std::string& statement, const mysql::SqlRow& values);

  /// Throws CommitInDoubt.
  void commit();
};

}  // namespace lockkeeper::inventory
