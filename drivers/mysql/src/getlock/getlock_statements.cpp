#include "getlock/getlock_statements.h"

namespace lockkeeper::mysql::statements {
namespace {

using std::chrono::seconds;

// A new row begins with the time, in microseconds: above all that a purged row of the name may have given.
constexpr const char* firstFence = "LAST_INSERT_ID(CAST(UNIX_TIMESTAMP(NOW(6))*1000000 AS UNSIGNED))";

void addQuoted(std::string& batch, std::string_view name) { batch.append("'").append(name).append("'"); }

void addHexadecimal(std::string& batch, std::string_view bytes) {
  constexpr const char* digits = "0123456789abcdef";
  batch += "x'";
  for (const char byte : bytes) {
    batch += digits[static_cast<unsigned char>(byte) / 16];
    batch += digits[static_cast<unsigned char>(byte) % 16];
  }
  batch += "'";
}

void addGetLock(std::string& batch, std::string_view name, seconds wait) {
  batch += "GET_LOCK(";
  addQuoted(batch, name);
  batch.append(",").append(std::to_string(wait.count())).append(")");
}

}  // namespace

std::string setUp() {
  // A counter row that somebody has locked shall fail the claim within one I/O timeout, not hold the session.
  // Comments of the form /*M! … */ are for MariaDB alone, /*!50708 … */ for MySQL alone: each has a name of
  // its own for the limit that would break off our waits.
  return "SET SESSION autocommit=1,innodb_lock_wait_timeout=1,lock_wait_timeout=1"
         "/*M!100100 ,max_statement_time=0*//*!50708 ,max_execution_time=0*/";
}

std::string checkFences() {
  return "INSERT INTO lockkeeper_fences(name,fence,session,owner) SELECT '',0,0,'' FROM DUAL WHERE FALSE "
         "ON DUPLICATE KEY UPDATE fence=fence+1";
}

std::string drawFence(std::string_view name, std::string_view claim, bool again, std::string_view owner) {
  std::string batch = "INSERT INTO lockkeeper_fences(name,fence,claim,owner) VALUES(";
  addQuoted(batch, name);
  batch.append(",").append(firstFence).append(",");
  addQuoted(batch, claim);
  batch += ",";
  addHexadecimal(batch, owner);
  batch += ") ON DUPLICATE KEY UPDATE fence=LAST_INSERT_ID(";
  batch += again ? "IF(claim=VALUES(claim),fence,fence+1)" : "fence+1";
  return batch.append("),claim=VALUES(claim),owner=VALUES(owner);SELECT LAST_INSERT_ID()");
}

std::string lastFence(std::string_view name) {
  std::string statement = "SELECT fence FROM lockkeeper_fences WHERE name=";
  addQuoted(statement, name);
  return statement;
}

void addClaim(std::string& batch, std::string_view name, seconds wait) {
  batch += "SELECT ";
  addGetLock(batch, name, wait);
  batch += ",CONNECTION_ID()";
}

void addFencedClaim(std::string& batch, std::string_view name, seconds wait, std::string_view owner) {
  // GET_LOCK stands alone: inside the INSERT it would wait with the table in use.
  batch += "SET @lockkeeper=";
  addGetLock(batch, name, wait);
  batch += ";INSERT INTO lockkeeper_fences(name,fence,session,owner) SELECT ";
  addQuoted(batch, name);
  batch.append(",").append(firstFence).append(",CONNECTION_ID(),");
  addHexadecimal(batch, owner);
  batch +=
      " FROM DUAL WHERE @lockkeeper=1 ON DUPLICATE KEY UPDATE fence=LAST_INSERT_ID(fence+1),"
      "session=CONNECTION_ID(),claim='',owner=";
  addHexadecimal(batch, owner);
  batch += ";SELECT @lockkeeper,CONNECTION_ID(),LAST_INSERT_ID()";
}

void addRelease(std::string& batch, std::string_view name) {
  batch += "SELECT RELEASE_LOCK(";
  addQuoted(batch, name);
  batch += "),CONNECTION_ID()";
}

void addTouch(std::string& batch) { batch += "SELECT CONNECTION_ID()"; }

void addLook(std::string& batch, std::string_view name, bool fences, bool again) {
  // First who, then the row, for which a claim that is being granted makes us wait: the next one queues
  // behind.
  if (again) batch += "DO SLEEP(0.02);";
  batch += "SET @lockkeeper=IS_USED_LOCK(";
  addQuoted(batch, name);
  if (!fences) {
    batch += ");SELECT @lockkeeper,CONNECTION_ID()";
    return;
  }
  batch +=
      ");SELECT @lockkeeper,CONNECTION_ID(),fence,session,owner FROM (SELECT 1) AS one LEFT JOIN "
      "lockkeeper_fences ON name=";
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

void addIdleTimeout(std::string& batch, seconds timeout) {
  batch.append("SET SESSION wait_timeout=").append(std::to_string(timeout.count())).append(";");
}

std::string cancel(std::uint64_t session) { return "KILL QUERY " + std::to_string(session); }

}  // namespace lockkeeper::mysql::statements
