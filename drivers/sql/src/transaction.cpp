#include "lockkeeper/sql/transaction.h"

namespace lockkeeper::sql {

Transaction::Transaction(ConnectionPool& pool, const char* begin) : lease_(pool) {
  lease_.connection().command(begin);
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    lease_.connection().command("ROLLBACK");
    lease_.keep();
  } catch (const Poco::Exception&) {
    // The lease closes the connection, which rolls back as well.
  }
}

void Transaction::commit() {
  open_ = false;
  try {
    lease_.connection().command("COMMIT");
  } catch (...) {
    lease_.close();
    throw;
  }
  lease_.keep();
}

}  // namespace lockkeeper::sql
