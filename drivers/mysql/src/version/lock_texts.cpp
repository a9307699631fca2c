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

// The owner of a row without the mark of a waiter, cut so that there is room for one. That of a lone share
// has room, and a row whose shares are in their table has no owner.
std::string ownerBeforeMark() {
  return std::string("IF(token LIKE 'shares/%', '', IF(") + isLoneOwner +
         ", SUBSTRING_INDEX(owner, '@', 2), LEFT(SUBSTRING_INDEX(owner, '@', 1), 46)))";
}

// The mark of one that is ahead.
constexpr const char* isAheadMark = "owner LIKE '%@@%'";

// Of a waiter that has just asked. It is not written anew at each of its looks, nor in place of one that
// `stays` for its own sake.
std::string markText(const LockTexts& texts, const std::string& mark, const std::string& stays) {
  return "IF(" + stays + " AND " + texts.closedFor + " > " + inMicroseconds(priority / 2) +
         ", owner, CONCAT(" + ownerBeforeMark() + ", '" + mark + "', " + microsecondsNow + " + " +
         inMicroseconds(priority) + "))";
}

std::string markedBy(const LockTexts& texts, LockTexts::Standing standing) {
  using enum LockTexts::Standing;
  if (standing == first)
    return "IF(" + std::string(isAheadMark) + " AND " + texts.closedFor + " > 0, owner, " +
           markText(texts, "@", "TRUE") + ")";
  // Others who share the key are in its row, or get there by the claim.
  if (standing == aheadAndWaits)
    return "IF(token LIKE 'shares/%', " + markText(texts, "@@", isAheadMark) + ", owner)";
  return "owner";
}

std::string closedTo(const LockTexts& texts, LockTexts::Standing standing) {
  using enum LockTexts::Standing;
  if (standing == newcomer) return texts.closedFor;
  if (standing == first) return "IF(" + std::string(isAheadMark) + ", " + texts.closedFor + ", 0)";
  return "0";
}

// The assignments are made from left to right: each sees the new values of those before it. The version is
// the last of the fences that are reserved; the session's insert id is the first.
std::string claimText(const LockTexts& texts, const std::string& closed, const std::string& marked) {
  const std::string held = isHeld;
  const std::string taken = "(" + held + " OR " + closed + " > 0)";
  return insertedRow(texts.table, "LAST_INSERT_ID(" + std::string(microsecondsNow) + ") + ?") +
         "version = IF(" + taken + ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version, " +
         std::to_string(busyMark) + " + IF(" + held + ", " + remaining + ", " + closed +
         "))), LAST_INSERT_ID(version + 1) + ?), " +  //
         "token = IF(" + taken +
         ", token, VALUES(token)), owner = IF(token = VALUES(token), VALUES(owner), " + marked +
         "), expires_at = IF(token = VALUES(token), VALUES(expires_at), expires_at)";
}

// The version counts up if the share is all of the key. The insert id is busyMark alone if others share the
// key.
std::string loneClaimText(const LockTexts& texts, const std::string& closed, const std::string& marked) {
  const std::string held = isHeld;
  const std::string taken = "(" + held + " OR " + closed + " > 0)";
  return insertedRow(texts.table, "LAST_INSERT_ID(" + std::string(microsecondsNow) + " + ?)") +
         "version = IF(" + taken + ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version, " +
         std::to_string(busyMark) + " + IF(NOT (" + held + "), " + closed + ", IF(token LIKE 'shares/%' OR " +
         isLoneOwner + ", 0, " + remaining + ")))), LAST_INSERT_ID(version + ?)), " +  //
         "owner = IF(" + taken + ", IF(token = VALUES(token), owner, " + marked + "), VALUES(owner)), " +
         "token = IF(" + taken + ", token, VALUES(token)), " +
         "expires_at = IF(token = VALUES(token), VALUES(expires_at), expires_at)";
}

std::string markAhead() {
  return std::string("CAST(SUBSTRING_INDEX(owner, '@', -1) AS SIGNED) - ") + microsecondsNow;
}

// Somebody who knows nothing of marks may have written an '@' of his own.
std::string closedForText() {
  return "IF(owner LIKE '%@_%' AND CONVERT(SUBSTRING_INDEX(owner, '@', -1) USING latin1) REGEXP '^[0-9]+$' "
         "AND LENGTH(SUBSTRING_INDEX(owner, '@', -1)) < 19 AND " +
         markAhead() + " BETWEEN 1 AND " + inMicroseconds(2 * priority) + ", " + markAhead() + ", 0)";
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
      closedFor(closedForText()),
      keptMark("IF(" + closedFor + " = 0, '', CONCAT(IF(" + isAheadMark +
               ", '@@', '@'), SUBSTRING_INDEX(owner, '@', -1)))"),
      isLone(std::string("(") + isLoneOwner + " AND " + isHeld + " AND token NOT LIKE 'shares/%')"),
      unmarked("CONCAT(" + ownerBeforeMark() + ", IF(" + isLoneOwner + ", '@0', ''))"),
      freed("token = '', owner = " + keptMark + ", expires_at = UTC_TIMESTAMP(6)"),
      release(releaseText(*this)),
      sharesSchema(schemaOf(itsTable, true)),
      byStanding_{ByStanding(*this, Standing::newcomer), ByStanding(*this, Standing::first),
                  ByStanding(*this, Standing::ahead), ByStanding(*this, Standing::aheadAndWaits)} {}

LockTexts::ByStanding::ByStanding(const LockTexts& texts, Standing standing)
    : closed(closedTo(texts, standing)),
      marked(markedBy(texts, standing)),
      claim(claimText(texts, closed, marked)),
      loneClaim(loneClaimText(texts, closed, marked)) {}

}  // namespace lockkeeper::mysql
