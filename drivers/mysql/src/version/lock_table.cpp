#include "version/lock_table.h"

#include <array>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::microseconds;
using Parameter = ServerSession::Parameter;

constexpr int keysOfPage = 500;

LockTable::Held heldIn(const Reply::Row& row) {
  LockTable::Held found{
      .key = row.at(0).value_or(""),
      .holder = {.owner = row.at(1).value_or(""),
                 .remaining = std::chrono::ceil<std::chrono::milliseconds>(microseconds(numberIn(row.at(3)))),
                 .fence = static_cast<Fence>(numberIn(row.at(2)))},
      .limit = std::nullopt};
  if (row.at(4)) found.limit = static_cast<std::uint32_t>(numberIn(row.at(4)));
  return found;
}

}  // namespace

const char* const LockTable::setUp =
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
    // The mode, because others change what the statements mean. A wait that outlives its caller holds up the
    // next one.
    "SET SESSION autocommit=1,sql_mode='STRICT_ALL_TABLES',innodb_lock_wait_timeout=2";

std::string LockTable::read(const std::string& table) { return "SELECT 1 FROM `" + table + "` LIMIT 0"; }

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

std::optional<LockTable::Held> LockTable::held(std::string_view key) {
  const Reply& reply = ask(heldWhere("lock_key = " + literal(key)));
  if (reply.rows.empty()) return std::nullopt;
  return heldIn(reply.rows.front());
}

std::vector<LockTable::Held> LockTable::page(std::string_view prefix, const std::string& after) {
  const std::string last = std::string(prefix) + std::string(maxKeyBytes, '\xff');
  const Reply& reply = ask(heldWhere("lock_key > " + literal(after) + " AND lock_key BETWEEN " +
                                     literal(prefix) + " AND " + literal(last)) +
                           " ORDER BY lock_key LIMIT " + std::to_string(keysOfPage));
  std::vector<Held> found;
  for (const Reply::Row& row : reply.rows) found.push_back(heldIn(row));
  return found;
}

bool LockTable::breakLock(std::string_view key, std::optional<Fence> version) {
  return ask("UPDATE " + texts_.table + " AS l SET " + freed + " WHERE lock_key = " + literal(key) + " AND " +
             isHeld + " AND NOT " + isShared + (version ? " AND version = " + std::to_string(*version) : ""))
             .changed == 1;
}

std::optional<LockTable::Tokens> LockTable::renewAll(Renewals renewals, SessionPool& cancelling) {
  if (askOrCancel(update(renewals), cancelling).changed == renewals.size()) return std::nullopt;
  return tokensIn(ask(select(renewals)));
}

std::string LockTable::update(Renewals renewals) const {
  return "UPDATE " + texts_.table + " SET expires_at = UTC_TIMESTAMP(6) + INTERVAL " + ttls(renewals) +
         " MICROSECOND WHERE expires_at > UTC_TIMESTAMP(6) AND " + anyOf(renewals);
}

std::string LockTable::select(Renewals renewals) const {
  return "SELECT token FROM " + texts_.table + " WHERE expires_at > UTC_TIMESTAMP(6) AND " + anyOf(renewals);
}

std::string LockTable::heldWhere(const std::string& condition) const {
  return std::string("SELECT lock_key, owner, version, ") + remaining + ", IF(" + isShared + ", " +
         limitOfShares + ", NULL) FROM " + texts_.table + " AS l WHERE " + condition + " AND " + isHeld;
}

}  // namespace lockkeeper::mysql
