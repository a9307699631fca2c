#include "getlock/session/getlock_statements.h"

#include <Poco/SHA2Engine.h>

#include "session/lock_name.h"
#include "session/statements/sql_text.h"

namespace lockkeeper::mysql::statements {
namespace {

using std::chrono::seconds;

// Who answers, and whether it takes writes: the first two columns of every answer.
constexpr const char* whoAnswers = "CONNECTION_ID(),@@global.read_only";

void addQuoted(std::string& batch, std::string_view name) { batch.append("'").append(name).append("'"); }

void addGetLock(std::string& batch, std::string_view name, seconds wait) {
  batch += "GET_LOCK(";
  addQuoted(batch, name);
  batch.append(",").append(std::to_string(wait.count())).append(")");
}

// The row must not tell a reader of the table what would let him release the lock.
std::string digestOf(const Token& token) {
  Poco::SHA2Engine engine(Poco::SHA2Engine::SHA_256);
  engine.update(token.hex());
  return Poco::DigestEngine::digestToHex(engine.digest());
}

// The row keeps the last of `count` fences; the session's insert id is the first of them.
std::string drawFenceIf(const char* condition, const Claim& claim, bool again, std::uint32_t count,
                        std::uint64_t session) {
  const std::string more = count > 1 ? "+" + std::to_string(count - 1) : "";
  // A new row begins with the time: above all that a purged row of the name may have given.
  std::string text = "INSERT INTO lockkeeper_fences(name,fence,session,claim,owner) SELECT ";
  addQuoted(text, lockName(claim.key));
  text.append(",LAST_INSERT_ID(").append(microsecondsNow).append(")").append(more);
  text.append(",").append(std::to_string(session));
  text += ",";
  addQuoted(text, digestOf(claim.token));
  text.append(",").append(hexLiteral(claim.owner)).append(" FROM DUAL WHERE ").append(condition);
  text += " ON DUPLICATE KEY UPDATE fence=LAST_INSERT_ID(";
  text += again ? "IF(claim=VALUES(claim),fence,fence+1)" : "fence+1";
  return text.append(")").append(more).append(
      ",session=VALUES(session),claim=VALUES(claim),owner=VALUES(owner)");
}

}  // namespace

std::string checkFences() {
  return "INSERT INTO lockkeeper_fences(name,fence,session,owner) SELECT '',0,0,'' FROM DUAL WHERE FALSE "
         "ON DUPLICATE KEY UPDATE fence=fence+1";
}

std::string readFences() { return "SELECT COUNT(*) FROM lockkeeper_fences WHERE name=''"; }

std::string drawFence(const Claim& claim, bool again, std::uint32_t count, std::uint64_t session) {
  return drawFenceIf("TRUE", claim, again, count, session);
}

std::string lastFence(std::string_view name) {
  std::string statement = "SELECT fence FROM lockkeeper_fences WHERE name=";
  addQuoted(statement, name);
  return statement;
}

void addClaim(std::string& batch, std::string_view name, seconds wait) {
  // One statement: a KILL QUERY between two of a batch ends it without a word, and the client waits for the
  // result that was announced.
  batch.append("SELECT ").append(whoAnswers).append(",");
  addGetLock(batch, name, wait);
}

void addFencedClaim(std::string& batch, const Claim& claim, bool again, std::uint32_t count,
                    std::uint64_t session) {
  batch += "SET @lockkeeper=";
  addGetLock(batch, lockName(claim.key), seconds{0});
  batch.append(";").append(drawFenceIf("@lockkeeper=1", claim, again, count, session));
  batch.append(";SELECT ").append(whoAnswers).append(",@lockkeeper,LAST_INSERT_ID()");
}

void addRelease(std::string& batch, std::string_view name) {
  batch.append("SELECT ").append(whoAnswers).append(",RELEASE_LOCK(");
  addQuoted(batch, name);
  batch += ")";
}

void addTouch(std::string& batch, bool inGroup) {
  batch.append("SELECT ").append(whoAnswers);
  if (inGroup) batch.append(",(").append(readFences()).append(")");
}

void addFence(std::string& batch, const Claim& claim, bool again, std::uint32_t count,
              std::uint64_t session) {
  batch.append(drawFence(claim, again, count, session)).append(";SELECT ").append(whoAnswers);
  batch += ",NULL,LAST_INSERT_ID()";
}

void addHolderQuery(std::string& batch, std::string_view name, bool fences, bool again) {
  // First who, then the row, for which a claim that is being granted makes us wait: the next one queues
  // behind.
  if (again) batch += "DO SLEEP(0.02);";
  batch += "SET @lockkeeper=IS_USED_LOCK(";
  addQuoted(batch, name);
  if (!fences) {
    batch += ");SELECT ";
    batch.append(whoAnswers).append(",@lockkeeper");
    return;
  }
  batch.append(");SELECT ").append(whoAnswers);
  batch += ",@lockkeeper,fence,session,owner FROM (SELECT 1) AS one LEFT JOIN lockkeeper_fences ON name=";
  addQuoted(batch, name);
  if (again) batch += " LOCK IN SHARE MODE";
}

void addFree(std::string& batch, const std::vector<std::string>& names) {
  batch += "DO ";
  for (const std::string& name : names) {
    batch += &name == &names.front() ? "RELEASE_LOCK(" : ",RELEASE_LOCK(";
    addQuoted(batch, name);
    batch += ")";
  }
  batch += ";";
}

std::string cancel(std::uint64_t session) { return "KILL QUERY " + std::to_string(session); }

}  // namespace lockkeeper::mysql::statements
