#include "version/lock_table.h"

#include <array>
#include <map>
#include <set>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"
#include "schema.h"
#include "session/reply_fault.h"
#include "session/sql_text.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::microseconds;
using Parameter = ServerSession::Parameter;

constexpr const char* tableInSchema = "lockkeeper_locks";
constexpr int keysOfPage = 500;

// UTC_TIMESTAMP does not depend on the session's time zone, and has no hour that comes twice. It is the time
// at which the statement began: a statement that waited for a row grants a shorter lease, never a longer one.
constexpr const char* isHeld = "token <> '' AND expires_at > UTC_TIMESTAMP(6)";
constexpr const char* remaining = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)";
constexpr const char* freed = "token = '', owner = '', expires_at = UTC_TIMESTAMP(6)";

// A server that is only slow takes less for an update.
constexpr std::chrono::milliseconds leastPatience{500};

// Tells how long a key stays taken from a fence, in the one number that the server returns with a statement.
constexpr std::uint64_t busyMark = std::uint64_t{1} << 62U;

std::string literal(std::string_view bytes) {
  std::string text;
  addHexadecimal(text, bytes);
  return text;
}

std::string inMicroseconds(std::chrono::milliseconds ttl) {
  return std::to_string(microseconds(ttl).count());
}

// The assignments are made from left to right: each sees the new values of those before it. The version is
// the last of the fences that are reserved; the session's insert id is the first.
std::string claimText(const std::string& table) {
  const std::string held = isHeld;
  return "INSERT INTO " + table +
         " (lock_key, version, token, owner, expires_at) VALUES (?, LAST_INSERT_ID(" + microsecondsNow +
         ") + ?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND) " +
         "ON DUPLICATE KEY UPDATE version = IF(" + held +
         ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version, " + std::to_string(busyMark) +
         " + " + remaining + ")), LAST_INSERT_ID(version + 1) + ?), token = IF(" + held +
         ", token, VALUES(token)), owner = IF(token = VALUES(token), VALUES(owner), owner), "
         "expires_at = IF(token = VALUES(token), VALUES(expires_at), expires_at)";
}

std::string releaseText(const std::string& table) {
  return "UPDATE " + table + " SET " + freed +
         " WHERE lock_key = ? AND token = ? AND expires_at > UTC_TIMESTAMP(6)";
}

std::string heldBy(const Claim& claim) {
  return "lock_key = " + literal(claim.key) + " AND token = '" + claim.token.hex() + "'";
}

std::string heldByAnyOf(std::span<Renewal* const> renewals) {
  std::string text = " WHERE expires_at > UTC_TIMESTAMP(6) AND (";
  for (const Renewal* each : renewals) {
    text.append(each == renewals.front() ? "(" : " OR (").append(heldBy(each->claim)).append(")");
  }
  return text + ")";
}

// The ttl of each in microseconds, as an expression: as a rule, all have one.
std::string ttls(std::span<Renewal* const> renewals) {
  std::map<std::chrono::milliseconds, std::string> tokensOf;
  for (const Renewal* each : renewals) {
    std::string& tokens = tokensOf[each->ttl];
    tokens.append(tokens.empty() ? "'" : ",'").append(each->claim.token.hex()).append("'");
  }
  if (tokensOf.size() == 1) return inMicroseconds(tokensOf.begin()->first);
  std::string text = "CASE";
  for (const auto& [ttl, tokens] : tokensOf) {
    text.append(" WHEN token IN (").append(tokens).append(") THEN ").append(inMicroseconds(ttl));
  }
  return text + " END";
}

using Tokens = std::set<std::string>;

Tokens tokensIn(const Reply& reply) {
  Tokens tokens;
  for (const Reply::Row& row : reply.rows) tokens.insert(row.at(0).value_or(""));
  return tokens;
}

std::int64_t number(const std::optional<std::string>& field) {
  return field ? wholeNumber<std::int64_t>(*field).value_or(0) : 0;
}

// Of the columns owner, version and remaining, from `first` on.
Holder holderIn(const Reply::Row& row, std::size_t first) {
  return {row.at(first).value_or(""),
          std::chrono::ceil<std::chrono::milliseconds>(microseconds(number(row.at(first + 2)))),
          static_cast<Fence>(number(row.at(first + 1)))};
}

}  // namespace

const char* const LockTable::setUp =
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
    // The mode, because others change what the statements mean. A wait that outlives its caller holds up the
    // next one.
    "SET SESSION autocommit=1,sql_mode='STRICT_ALL_TABLES',innodb_lock_wait_timeout=2";

std::string LockTable::schema(const std::string& table) {
  std::string text = versionSchema;
  text.erase(text.rfind(';'));
  const std::string quotedName = "`" + std::string(tableInSchema) + "`";
  return text.replace(text.find(quotedName), quotedName.size(), "`" + table + "`");
}

std::string LockTable::read(const std::string& table) { return "SELECT 1 FROM `" + table + "` LIMIT 0"; }

LockTable::Texts::Texts(const std::string& itsTable)
    : table("`" + itsTable + "`"), claim(claimText(table)), release(releaseText(table)) {}

std::variant<Fence, microseconds> LockTable::claim(const Claim& claim, std::chrono::milliseconds ttl,
                                                   std::uint32_t fences) {
  const std::string token = claim.token.hex();
  const std::int64_t more = std::int64_t{fences} - 1;
  const Reply& reply = session_.execute(
      texts_.claim,
      std::array<Parameter, 6>{claim.key, more, token, claim.owner, microseconds(ttl).count(), more},
      deadline_);
  if (reply.insertId < busyMark) return Fence{reply.insertId};
  return microseconds(static_cast<std::int64_t>(reply.insertId - busyMark));
}

bool LockTable::release(const Claim& claim) {
  const std::string token = claim.token.hex();
  return session_.execute(texts_.release, std::array<Parameter, 2>{claim.key, token}, deadline_).changed == 1;
}

void LockTable::renew(std::span<Renewal* const> renewals, SessionPool& cancelling) {
  const auto patience = (deadline_ - session_.clock().now()) / 2;
  try {
    const Reply& reply =
        patience < leastPatience
            ? ask(update(renewals))
            : session_.askOrCancel(update(renewals), deadline_ - patience, deadline_, cancelling);
    const bool all = reply.changed == renewals.size();
    const auto ours = all ? Tokens() : tokensIn(ask(select(renewals)));
    for (Renewal* each : renewals) {
      each->outcome =
          all || ours.contains(each->claim.token.hex()) ? RenewOutcome::renewed : RenewOutcome::notOwner;
    }
  } catch (const Contention&) {
    if (renewals.size() == 1) throw;
    renewUnkept(renewals);
  }
}

void LockTable::renewUnkept(std::span<Renewal* const> renewals) {
  const std::string looks = select(renewals);
  const Tokens unkept = tokensIn(ask("START TRANSACTION;" + looks + " FOR UPDATE SKIP LOCKED"));
  std::vector<Renewal*> renewed;
  for (Renewal* each : renewals) {
    if (unkept.contains(each->claim.token.hex())) renewed.push_back(each);
  }
  const Tokens ours = tokensIn(ask((renewed.empty() ? "" : update(renewed) + ";") + "COMMIT;" + looks));
  for (Renewal* each : renewals) {
    const std::string token = each->claim.token.hex();
    if (!ours.contains(token)) {
      each->outcome = RenewOutcome::notOwner;
    } else if (unkept.contains(token)) {
      each->outcome = RenewOutcome::renewed;
    } else {
      each->outcome = RenewOutcome::unavailable;
      each->cause = "somebody else's transaction keeps the row of the lock";
    }
  }
}

std::string LockTable::update(std::span<Renewal* const> renewals) const {
  return "UPDATE " + texts_.table + " SET expires_at = UTC_TIMESTAMP(6) + INTERVAL " + ttls(renewals) +
         " MICROSECOND" + heldByAnyOf(renewals);
}

std::string LockTable::select(std::span<Renewal* const> renewals) const {
  return "SELECT token FROM " + texts_.table + heldByAnyOf(renewals);
}

std::optional<Holder> LockTable::holder(std::string_view key) {
  const Reply& reply = ask(std::string("SELECT owner, version, ") + remaining + " FROM " + texts_.table +
                           " WHERE lock_key = " + literal(key) + " AND " + isHeld);
  if (reply.rows.empty()) return std::nullopt;
  return holderIn(reply.rows.front(), 0);
}

std::vector<std::pair<std::string, Holder>> LockTable::page(std::string_view prefix,
                                                            const std::string& after) {
  const std::string last = std::string(prefix) + std::string(maxKeyBytes, '\xff');
  const Reply& reply =
      ask(std::string("SELECT lock_key, owner, version, ") + remaining + " FROM " + texts_.table +
          " WHERE lock_key > " + literal(after) + " AND lock_key BETWEEN " + literal(prefix) + " AND " +
          literal(last) + " AND " + isHeld + " ORDER BY lock_key LIMIT " + std::to_string(keysOfPage));
  std::vector<std::pair<std::string, Holder>> found;
  for (const Reply::Row& row : reply.rows) found.emplace_back(row.at(0).value_or(""), holderIn(row, 1));
  return found;
}

bool LockTable::breakLock(std::string_view key, std::optional<Fence> version) {
  return ask("UPDATE " + texts_.table + " SET " + freed + " WHERE lock_key = " + literal(key) + " AND " +
             isHeld + (version ? " AND version = " + std::to_string(*version) : ""))
             .changed == 1;
}

}  // namespace lockkeeper::mysql
