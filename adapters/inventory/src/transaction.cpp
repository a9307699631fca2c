#include "transaction.h"

#include "lockkeeper/mysql/poco_rows.h"

namespace lockkeeper::inventory {

std::optional<mysql::SqlRow> Transaction::select(const std::string& statement, const mysql::SqlRow& values) {
  return mysql::selectRow(sql(), statement, values);
}

std::size_t Transaction::execute(const std::string& statement, const mysql::SqlRow& values) {
  return mysql::executeOn(sql(), statement, values);
}

void Transaction::commit() {
  try {
    sql::Transaction::commit();
  } catch (const Poco::Exception&) {
    throw CommitInDoubt();
  }
}

}  // namespace lockkeeper::inventory
