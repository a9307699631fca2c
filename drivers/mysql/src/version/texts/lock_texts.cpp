#include "version/texts/lock_texts.h"

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

// The mark of an upgrade.
constexpr const char* isUpgradeMark = "owner LIKE '%@@%'";

// The key stays closed for longer than that. A mark that is much further ahead than a waiter sets one is from
// before the server's clock was set back; one that is a little further ahead is from while this statement
// waited for the row. Times have sixteen digits until the year 2286, so that they compare as texts. The
// server prepares each part of an expression anew for each statement: this one is short.
std::string staysClosedFor(std::chrono::microseconds length) {
  const auto markIn = [](std::chrono::microseconds ahead) {
    return "CONCAT('@', " + std::string(microsecondsNow) + " + " + inMicroseconds(ahead) + ")";
  };
  return "(RIGHT(owner, 17) BETWEEN " + markIn(length + std::chrono::microseconds{1}) + " AND " +
         markIn(2 * priority) + ")";
}

// Of a waiter that has just asked. Where `stays` holds, one that is still new is not written again.
std::string markText(const std::string& mark, const std::string& stays) {
  return "IF(" + stays + " AND " + staysClosedFor(newMark) + ", owner, CONCAT(" + ownerBeforeMark() + ", '" +
         mark + "', " + microsecondsNow + " + " + inMicroseconds(priority) + "))";
}

std::string closedTo(const LockTexts& texts, LockTexts::Standing standing) {
  using enum LockTexts::Standing;
  if (standing == newcomer) return texts.isClosed;
  if (standing == first) return "(" + std::string(isUpgradeMark) + " AND " + texts.isClosed + ")";
  return "FALSE";
}

std::string markedBy(const LockTexts& texts, LockTexts::Standing standing) {
  using enum LockTexts::Standing;
  if (standing == first) return "IF(" + closedTo(texts, first) + ", owner, " + markText("@", "TRUE") + ")";
  // Others who share the key are in its row, or get there by the claim.
  if (standing == waitingUpgrade)
    return "IF(token LIKE 'shares/%', " + markText("@@", isUpgradeMark) + ", owner)";
  return "owner";
}

// The first assignment: a row that is free ends now at the latest. If the server's clock was set back, it may
// have been freed at a later time, which would become the end of the new lease.
std::string endedIfFree() {
  return std::string("expires_at = IF(") + isHeld + ", expires_at, LEAST(expires_at, UTC_TIMESTAMP(6))), ";
}

// The last one. A claim that was sent before may have a longer lease by now.
constexpr const char* longerLease =
    "expires_at = IF(token = VALUES(token), GREATEST(expires_at, VALUES(expires_at)), expires_at)";

// The assignments are made from left to right: each sees the new values of those before it. The version is
// the last of the fences that are reserved; the session's insert id is the first.
std::string claimText(const LockTexts& texts, const std::string& closed, const std::string& marked) {
  const std::string held = isHeld;
  const std::string taken = "(" + held + " OR " + closed + ")";
  return insertedRow(texts.table, "LAST_INSERT_ID(" + std::string(microsecondsNow) + ") + ?") +
         endedIfFree() + "version = IF(" + taken +
         ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version + " + std::to_string(foundMark) +
         ", " + std::to_string(busyMark) + " + IF(" + held + ", " + remaining + ", " +
         inMicroseconds(priority) + "))), LAST_INSERT_ID(version + 1) + ?), " +  //
         "token = IF(" + taken +
         ", token, VALUES(token)), owner = IF(token = VALUES(token), VALUES(owner), " + marked + "), " +
         longerLease;
}

// The version counts up if the share is all of the key. The insert id is busyMark alone if others share the
// key.
std::string loneClaimText(const LockTexts& texts, const std::string& closed, const std::string& marked) {
  const std::string held = isHeld;
  const std::string taken = "(" + held + " OR " + closed + ")";
  return insertedRow(texts.table, "LAST_INSERT_ID(" + std::string(microsecondsNow) + " + ?)") +
         endedIfFree() + "version = IF(" + taken +
         ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version, " + std::to_string(busyMark) +
         " + IF(NOT (" + held + "), " + inMicroseconds(priority) + ", IF(token LIKE 'shares/%' OR " +
         isLoneOwner + ", 0, " + remaining + ")))), LAST_INSERT_ID(version + ?)), " +  //
         "owner = IF(" + taken + ", IF(token = VALUES(token), owner, " + marked + "), VALUES(owner)), " +
         "token = IF(" + taken + ", token, VALUES(token)), " + longerLease;
}

std::string releaseText(const LockTexts& texts) {
  return "UPDATE " + texts.table + " SET " + texts.freed +
         " WHERE lock_key = ? AND token = ? AND expires_at > UTC_TIMESTAMP(6)";
}

std::string bothSchemas(const std::string& table) {
  std::string text = versionSchema;
  for (auto at = text.find(tableInSchema); at != text.npos; at = text.find(tableInSchema, at + 1))
    text.replace(at, tableInSchema.size(), "`" + table);
  return text;
}

std::size_t endOfFirst(const std::string& schemas) { return schemas.find(";\n") + 1; }

}  // namespace

std::string schemaOf(const std::string& table) {
  const std::string both = bothSchemas(table);
  return both.substr(0, endOfFirst(both));
}

std::string sharesSchemaOf(const std::string& table) {
  const std::string both = bothSchemas(table);
  return both.substr(endOfFirst(both));
}

// A row that comes back begins with the time as its version: that of the statement that makes it, which may
// have waited, on a clock that may have been set back, by a wrong time zone for example. So both the end of
// its last lease and its version must be a day old.
UnusedRows::Table unusedRows(const LockTexts& texts) {
  return {.name = texts.table,
          .family = {},
          .key = "lock_key",
          .isUnused = "expires_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY AND version < " +
                      std::string(microsecondsNow) + " - " + inMicroseconds(std::chrono::hours{24})};
}

LockTexts::LockTexts(const std::string& itsTable)
    : table("`" + itsTable + "`"),
      shares("`" + itsTable + "_shares`"),
      isClosed(staysClosedFor(std::chrono::microseconds{0})),
      keptMark("IF(" + isClosed + ", CONCAT(IF(" + isUpgradeMark + ", '@', ''), RIGHT(owner, 17)), '')"),
      isLone(std::string("(") + isLoneOwner + " AND " + isHeld + " AND token NOT LIKE 'shares/%')"),
      unmarked("CONCAT(" + ownerBeforeMark() + ", IF(" + isLoneOwner + ", '@0', ''))"),
      freed("token = '', owner = " + keptMark + ", expires_at = UTC_TIMESTAMP(6)"),
      release(releaseText(*this)),
      byStanding_{ByStanding(*this, Standing::newcomer), ByStanding(*this, Standing::first),
                  ByStanding(*this, Standing::upgrade), ByStanding(*this, Standing::waitingUpgrade)} {}

LockTexts::ByStanding::ByStanding(const LockTexts& texts, Standing standing)
    : closed(closedTo(texts, standing)),
      marked(markedBy(texts, standing)),
      claim(claimText(texts, closed, marked)),
      loneClaim(loneClaimText(texts, closed, marked)) {}

}  // namespace lockkeeper::mysql
