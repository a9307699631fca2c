#include "mysql/raw_rows.h"

#include <mysql/mysql.h>

#include <stdexcept>
#include <utility>

namespace lockkeeper::bench {

namespace {

// As DatabaseServer has it.
constexpr const char* user = "shop";
constexpr const char* password = "p@ss/word";

constexpr const char* take =
    "UPDATE bare_rows SET version = version + 1, token = '0123456789abcdef0123456789abcdef', "
    "expires_at = UTC_TIMESTAMP(6) + INTERVAL 30 SECOND WHERE id = ? AND token = ''";
constexpr const char* free =
    "UPDATE bare_rows SET token = '', expires_at = UTC_TIMESTAMP(6) "
    "WHERE id = ? AND token = '0123456789abcdef0123456789abcdef'";

MYSQL_BIND boundTo(std::variant<std::string, std::int64_t>& value) {
  MYSQL_BIND bind{};
  if (auto* const text = std::get_if<std::string>(&value)) {
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = text->data();
    bind.buffer_length = text->size();
  } else {
    bind.buffer_type = MYSQL_TYPE_LONGLONG;
    bind.buffer = &std::get<std::int64_t>(value);
  }
  return bind;
}

}  // namespace

void RawRows::Close::operator()(MYSQL* handle) const { mysql_close(handle); }
void RawRows::Close::operator()(MYSQL_STMT* statement) const { mysql_stmt_close(statement); }

RawRows::RawRows(std::uint16_t port, const std::string& database, Statement take, Statement free)
    : handle_(mysql_init(nullptr)), takeText_(std::move(take)), freeText_(std::move(free)) {
  if (mysql_real_connect(handle_.get(), "127.0.0.1", user, password, database.c_str(), port, nullptr, 0) ==
      nullptr) {
    throw std::runtime_error("the client library does not connect");
  }
}

RawRows::RawRows(std::uint16_t port, const std::string& database, const std::string& key)
    : RawRows(port, database, {take, {key}}, {free, {key}}) {
  run("CREATE TABLE IF NOT EXISTS bare_rows (id VARBINARY(64) PRIMARY KEY, version BIGINT NOT NULL, "
      "token VARBINARY(32) NOT NULL, expires_at DATETIME(6) NOT NULL) ENGINE = InnoDB");
  run("INSERT IGNORE INTO bare_rows VALUES ('" + key + "', 1, '', UTC_TIMESTAMP(6))");
}

void RawRows::pair() {
  if (!take_) {
    take_ = prepare(takeText_);
    free_ = prepare(freeText_);
  }
  change(take_.get());
  change(free_.get());
}

void RawRows::run(const std::string& statement) {
  if (mysql_real_query(handle_.get(), statement.data(), statement.size()) != 0) {
    throw std::runtime_error(mysql_error(handle_.get()));
  }
}

RawRows::Prepared RawRows::prepare(Statement& statement) {
  Prepared prepared(mysql_stmt_init(handle_.get()));
  std::vector<MYSQL_BIND> binds;
  for (auto& value : statement.values) binds.push_back(boundTo(value));
  if (mysql_stmt_prepare(prepared.get(), statement.text.data(), statement.text.size()) != 0 ||
      mysql_stmt_bind_param(prepared.get(), binds.data()) != 0) {
    throw std::runtime_error(mysql_stmt_error(prepared.get()));
  }
  return prepared;
}

void RawRows::change(MYSQL_STMT* statement) {
  if (mysql_stmt_execute(statement) != 0) throw std::runtime_error(mysql_stmt_error(statement));
  if (mysql_stmt_affected_rows(statement) == 0)
    throw std::runtime_error("the bare row was not as it should be");
}

}  // namespace lockkeeper::bench
