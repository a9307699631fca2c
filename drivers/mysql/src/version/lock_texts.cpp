#include "version/lock_texts.h"

#include "schema.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::string_view tableInSchema = "`lockkeeper_locks";

// The assignments are made from left to right: each sees the new values of those before it. The version is
// the last of the fences that are reserved; the session's insert id is the first.
std::string claimText(const std::string& table, const std::string& waiterMark) {
  const std::string held = isHeld;
  return "INSERT INTO " + table +
         " (lock_key, version, token, owner, expires_at) VALUES (?, LAST_INSERT_ID(" + microsecondsNow +
         ") + ?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND) " +
         "ON DUPLICATE KEY UPDATE version = IF(" + held +
         ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version, " + std::to_string(busyMark) +
         " + " + remaining + ")), LAST_INSERT_ID(version + 1) + ?), " + "token = IF(" + held +
         ", token, VALUES(token)), owner = IF(token = VALUES(token), VALUES(owner), " +
         "IF(? AND token LIKE 'shares/%', " + waiterMark +
         ", owner)), "
         "expires_at = IF(token = VALUES(token), VALUES(expires_at), expires_at)";
}

std::string releaseText(const std::string& table) {
  return "UPDATE " + table + " SET " + freed +
         " WHERE lock_key = ? AND token = ? AND expires_at > UTC_TIMESTAMP(6)";
}

}  // namespace

std::string schemaOf(const std::string& table, bool ofShares) {
  // An empty line stands between the two statements.
  const std::string all = versionSchema;
  const std::size_t end = all.find("\n\n");
  std::string text = ofShares ? all.substr(end) : all.substr(0, end);
  text.erase(text.rfind(';'));
  return text.replace(text.find(tableInSchema), tableInSchema.size(), "`" + table);
}

LockTexts::LockTexts(const std::string& itsTable)
    : table("`" + itsTable + "`"),
      shares("`" + itsTable + "_shares`"),
      waiterMark(std::string("CONCAT('@', ") + microsecondsNow + " + " + priority + ")"),
      claim(claimText(table, waiterMark)),
      release(releaseText(table)),
      sharesSchema(schemaOf(itsTable, true)) {}

}  // namespace lockkeeper::mysql
