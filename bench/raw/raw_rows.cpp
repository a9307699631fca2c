#include "raw_rows.h"

#include <mysql/mysql.h>

#include <stdexcept>

namespace lockkeeper::bench {

namespace {

// As DatabaseServer has it.
constexpr const char* user = "shop";
constexpr const char* password = "p@ss/word";

}  // namespace

void RawRows::Close::operator()(MYSQL* handle) const { mysql_close(handle); }
void RawRows::Close::operator()(MYSQL_STMT* statement) const { mysql_stmt_close(statement); }

RawRows::RawRows(std::uint16_t port, const std::string& database, std::string key)
    : handle_(mysql_init(nullptr)), key_(std::move(key)) {
  if (mysql_real_connect(handle_.get(), "127.0.0.1", user, password, database.c_str(), port, nullptr, 0) ==
      nullptr) {
    throw std::runtime_error("the client library does not connect");
  }
  run("CREATE TABLE IF NOT EXISTS bare_rows (id VARBINARY(64) PRIMARY KEY, version BIGINT NOT NULL, "
      "token VARBINARY(32) NOT NULL, expires_at DATETIME(6) NOT NULL) ENGINE = InnoDB");
  run("INSERT IGNORE INTO bare_rows VALUES ('" + key_ + "', 1, '', UTC_TIMESTAMP(6))");
  take_ = prepare(
      "UPDATE bare_rows SET version = version + 1, token = '0123456789abcdef0123456789abcdef', "
      "expires_at = UTC_TIMESTAMP(6) + INTERVAL 30 SECOND WHERE id = ? AND token = ''");
  free_ = prepare(
      "UPDATE bare_rows SET token = '', expires_at = UTC_TIMESTAMP(6) "
      "WHERE id = ? AND token = '0123456789abcdef0123456789abcdef'");
}

void RawRows::pair() {
  updateOne(take_.get());
  updateOne(free_.get());
}

void RawRows::run(const std::string& statement) {
  if (mysql_real_query(handle_.get(), statement.data(), statement.size()) != 0) {
    throw std::runtime_error(mysql_error(handle_.get()));
  }
}

RawRows::Statement RawRows::prepare(const std::string& text) {
  Statement statement(mysql_stmt_init(handle_.get()));
  MYSQL_BIND key{};
  key.buffer_type = MYSQL_TYPE_STRING;
  key.buffer = key_.data();
  key.buffer_length = key_.size();
  if (mysql_stmt_prepare(statement.get(), text.data(), text.size()) != 0 ||
      mysql_stmt_bind_param(statement.get(), &key) != 0) {
    throw std::runtime_error(mysql_stmt_error(statement.get()));
  }
  return statement;
}

void RawRows::updateOne(MYSQL_STMT* statement) {
  if (mysql_stmt_execute(statement) != 0) throw std::runtime_error(mysql_stmt_error(statement));
  if (mysql_stmt_affected_rows(statement) != 1)
    throw std::runtime_error("the bare row was not as it should be");
}

}  // namespace lockkeeper::bench
