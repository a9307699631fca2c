#include "mysql/raw_getlock.h"

#include <chrono>
#include <stdexcept>

#include "getlock/session/getlock_statements.h"
#include "hosts/session_rules.h"
#include "lockkeeper/base/random.h"

namespace lockkeeper::bench {

namespace statements = mysql::statements;

RawGetLock::RawGetLock(std::uint16_t port, const std::string& database, const std::string& name)
    : session_(port, database),
      claim_("SELECT GET_LOCK('" + name + "',0)"),
      fencedClaim_("SET @got=GET_LOCK('" + name + "',0);INSERT INTO raw_fences SELECT '" + name +
                   "',LAST_INSERT_ID(1) FROM DUAL WHERE @got=1 ON DUPLICATE KEY UPDATE "
                   "fence=LAST_INSERT_ID(fence+1);SELECT @got,LAST_INSERT_ID()"),
      release_("SELECT RELEASE_LOCK('" + name + "')") {
  session_.ask(
      "CREATE TABLE IF NOT EXISTS raw_fences (name VARBINARY(64) NOT NULL PRIMARY KEY, fence BIGINT UNSIGNED "
      "NOT NULL) ENGINE = InnoDB");
  session_.ask(mysql::pinScript(statements::sessionRules));
  statements::addClaim(checkedClaim_, name, std::chrono::seconds{0});
  statements::addRelease(checkedRelease_, name);
  statements::addFencedClaim(checkedFencedClaim_,
                             {.key = name, .token = Token::generate(*systemRandom()), .owner = "bench"},
                             false, 1, 0);
}

void RawGetLock::pair() { run(claim_, release_, 0); }
void RawGetLock::fencedPair() { run(fencedClaim_, release_, 0); }
void RawGetLock::checkedPair() { run(checkedClaim_, checkedRelease_, 2); }
void RawGetLock::checkedFencedPair() { run(checkedFencedClaim_, checkedRelease_, 2); }

void RawGetLock::run(const std::string& claim, const std::string& release, unsigned column) {
  if (session_.ask(claim, column) != "1" || session_.ask(release, column) != "1")
    throw std::runtime_error("the raw lock was busy");
}

}  // namespace lockkeeper::bench
