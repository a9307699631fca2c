#include "raw_getlock.h"

#include <stdexcept>

namespace lockkeeper::bench {

RawGetLock::RawGetLock(std::uint16_t port, const std::string& database) : session_(port, database) {
  session_.ask(
      "CREATE TABLE IF NOT EXISTS raw_fences (name VARBINARY(64) NOT NULL PRIMARY KEY, fence BIGINT UNSIGNED "
      "NOT "
      "NULL) ENGINE = InnoDB");
}

void RawGetLock::pair(const std::string& name) {
  if (session_.ask("SELECT GET_LOCK('" + name + "',0)") != "1" ||
      session_.ask("SELECT RELEASE_LOCK('" + name + "')") != "1")
    throw std::runtime_error("the raw lock was busy");
}

void RawGetLock::checkedPair(const std::string& name) {
  const std::string who = "SELECT CONNECTION_ID(),@@global.read_only,";
  if (session_.ask(who + "GET_LOCK('" + name + "',0)", 2) != "1" ||
      session_.ask(who + "RELEASE_LOCK('" + name + "')", 2) != "1")
    throw std::runtime_error("the raw lock was busy");
}

void RawGetLock::fencedPair(const std::string& name) {
  const bool got = session_.ask("SET @got=GET_LOCK('" + name + "',0);INSERT INTO raw_fences SELECT '" + name +
                                "',LAST_INSERT_ID(1) FROM DUAL WHERE @got=1 ON DUPLICATE KEY UPDATE "
                                "fence=LAST_INSERT_ID(fence+1);SELECT @got,LAST_INSERT_ID()") == "1";
  if (!got || session_.ask("SELECT RELEASE_LOCK('" + name + "')") != "1")
    throw std::runtime_error("the raw lock was busy");
}

}  // namespace lockkeeper::bench
