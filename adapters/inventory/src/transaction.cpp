#include "transaction.h"

namespace lockkeeper::inventory {

Transaction::Transaction(ConnectionPool& pool) : lease_(pool) {
  send(connection().dialect() == Dialect::sqlite ? "BEGIN IMMEDIATE" : "START TRANSACTION");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    send("ROLLBACK");
    lease_.keep();
  } catch (const Poco::Exception&) {
    // The lease closes the connection, which rolls back as well.
  }
}

void Transaction::commit() {
  open_ = false;
  try {
    send("COMMIT");
  } catch (...) {
    lease_.close();
    throw;
  }
  lease_.keep();
}

void Transaction::send(const char* statement) { connection().sql() << statement, Poco::Data::Keywords::now; }

}  // namespace lockkeeper::inventory
