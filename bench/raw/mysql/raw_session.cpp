#include "mysql/raw_session.h"

#include <mysql/mysql.h>

#include <stdexcept>

namespace lockkeeper::bench {

void RawSession::Close::operator()(st_mysql* handle) const { mysql_close(handle); }

RawSession::RawSession(std::uint16_t port, const std::string& database) : handle_(mysql_init(nullptr)) {
  if (mysql_real_connect(handle_.get(), "127.0.0.1", "auditor", "auditor", database.c_str(), port, nullptr,
                         CLIENT_MULTI_STATEMENTS) == nullptr) {
    throw std::runtime_error(mysql_error(handle_.get()));
  }
}

std::string RawSession::ask(const std::string& statements, unsigned column) {
  std::string answer;
  if (mysql_real_query(handle_.get(), statements.data(), statements.size()) != 0)
    throw std::runtime_error(mysql_error(handle_.get()));
  do {
    MYSQL_RES* const result = mysql_store_result(handle_.get());
    if (result == nullptr) continue;
    const MYSQL_ROW row = mysql_fetch_row(result);
    if (row != nullptr && row[column] != nullptr) answer = row[column];
    mysql_free_result(result);
  } while (mysql_next_result(handle_.get()) == 0);
  return answer;
}

}  // namespace lockkeeper::bench
