#include "version/lock_texts.h"

#include "schema.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::string_view tableInSchema = "`lockkeeper_locks";

// The values: the key, one in `version`, the token, the owner, the ttl.
std::string insertedRow(const std::string& table, const std::string& version) {
  return "INSERT INTO " + table + " (lock_key, version, token, owner, expires_at) VALUES (?, " + version +
         ", ?, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND) ON DUPLICATE KEY UPDATE ";
}

// The assignments are made from left to right: each sees the new values of those before it. The version is
// the last of the fences that are reserved; the session's insert id is the first.
std::string claimText(const LockTexts& texts) {
  const std::string held = isHeld;
  return insertedRow(texts.table, "LAST_INSERT_ID(" + std::string(microsecondsNow) + ") + ?") +
         "version = IF(" + held + ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version, " +
         std::to_string(busyMark) + " + " + remaining + ")), LAST_INSERT_ID(version + 1) + ?), " +
         "token = IF(" + held + ", token, VALUES(token)), owner = IF(token = VALUES(token), VALUES(owner), " +
         "IF(? AND (token LIKE 'shares/%' OR " + isLoneOwner + "), CONCAT(IF(" + isLoneOwner +
         ", SUBSTRING_INDEX(owner, '@', 2), ''), " + texts.waiterMark + "), owner)), " +
         "expires_at = IF(token = VALUES(token), VALUES(expires_at), expires_at)";
}

// The key counts as taken also while a claim of the whole key waits. The version counts up if the share is
// all of the key. The insert id is busyMark alone if others share the key.
std::string loneClaimText(const LockTexts& texts) {
  const std::string held = isHeld;
  const std::string taken = "(" + held + " OR " + texts.closedFor + " > 0)";
  return insertedRow(texts.table, "LAST_INSERT_ID(" + std::string(microsecondsNow) + " + ?)") +
         "version = IF(" + taken + ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version, " +
         std::to_string(busyMark) + " + IF(NOT (" + held + "), " + texts.closedFor +
         ", IF(token LIKE 'shares/%' OR " + isLoneOwner + ", 0, " + remaining +
         ")))), LAST_INSERT_ID(version + ?)), " +               //
         "owner = IF(" + taken + ", owner, VALUES(owner)), " +  //
         "token = IF(" + taken + ", token, VALUES(token)), " +
         "expires_at = IF(token = VALUES(token), VALUES(expires_at), expires_at)";
}

std::string markAhead() {
  return std::string("CAST(SUBSTRING_INDEX(owner, '@', -1) AS SIGNED) - ") + microsecondsNow;
}

std::string releaseText(const LockTexts& texts) {
  return "UPDATE " + texts.table + " SET " + texts.freed +
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
      closedFor("IF(owner LIKE '%@_%' AND " + markAhead() + " BETWEEN 1 AND 2 * " + priority + ", " +
                markAhead() + ", 0)"),
      keptMark("IF(" + closedFor + " = 0, '', CONCAT('@', SUBSTRING_INDEX(owner, '@', -1)))"),
      freed("token = '', owner = " + keptMark + ", expires_at = UTC_TIMESTAMP(6)"),
      claim(claimText(*this)),
      loneClaim(loneClaimText(*this)),
      release(releaseText(*this)),
      sharesSchema(schemaOf(itsTable, true)) {}

}  // namespace lockkeeper::mysql
