#include "raw_getlock.h"

#include <mysql/mysql.h>

#include <stdexcept>

namespace lockkeeper::bench {

void RawGetLock::Close::operator()(st_mysql* handle) const { mysql_close(handle); }

RawGetLock::RawGetLock(std::uint16_t port, const std::string& database) : handle_(mysql_init(nullptr)) {
  if (mysql_real_connect(handle_.get(), "127.0.0.1", "auditor", "auditor", database.c_str(), port, nullptr,
                         CLIENT_MULTI_STATEMENTS) == nullptr) {
    throw std::runtime_error(mysql_error(handle_.get()));
  }
  ask("CREATE TABLE IF NOT EXISTS raw_fences (name VARBINARY(64) NOT NULL PRIMARY KEY, fence BIGINT UNSIGNED "
      "NOT "
      "NULL) ENGINE = InnoDB");
}

void RawGetLock::pair(const std::string& name) {
  if (ask("SELECT GET_LOCK('" + name + "',0)") != "1" || ask("SELECT RELEASE_LOCK('" + name + "')") != "1")
    throw std::runtime_error("the raw lock was busy");
}

void RawGetLock::fencedPair(const std::string& name) {
  const bool got = ask("SET @got=GET_LOCK('" + name + "',0);INSERT INTO raw_fences SELECT '" + name +
                       "',LAST_INSERT_ID(1) FROM DUAL WHERE @got=1 ON DUPLICATE KEY UPDATE "
                       "fence=LAST_INSERT_ID(fence+1);SELECT @got,LAST_INSERT_ID()") == "1";
  if (!got || ask("SELECT RELEASE_LOCK('" + name + "')") != "1")
    throw std::runtime_error("the raw lock was busy");
}

std::string RawGetLock::ask(const std::string& statements) {
  std::string answer;
  if (mysql_real_query(handle_.get(), statements.data(), statements.size()) != 0)
    throw std::runtime_error(mysql_error(handle_.get()));
  do {
    MYSQL_RES* const result = mysql_store_result(handle_.get());
    if (result == nullptr) continue;
    const MYSQL_ROW row = mysql_fetch_row(result);
    if (row != nullptr && row[0] != nullptr) answer = row[0];
    mysql_free_result(result);
  } while (mysql_next_result(handle_.get()) == 0);
  return answer;
}

}  // namespace lockkeeper::bench
