#include "version/lock_table.h"

#include <algorithm>

#include "lockkeeper/driver/key.h"
#include "schema.h"

namespace lockkeeper::mysql {
namespace {

using Poco::Data::Statement;
using Poco::Data::Keywords::bind;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;
using Poco::Data::Keywords::use;
using std::chrono::microseconds;

constexpr const char* tableInSchema = "lockkeeper_locks";
constexpr int keysOfPage = 500;

// UTC_TIMESTAMP does not depend on the session's time zone, and has no hour that comes twice. It is the time
// at which the statement began: a statement that waited for a row grants a shorter lease, never a longer one.
constexpr const char* isHeld = "token <> '' AND expires_at > UTC_TIMESTAMP(6)";
constexpr const char* inTtl = "UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND";
constexpr const char* remaining = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)";
constexpr const char* freed = "token = '', owner = '', expires_at = UTC_TIMESTAMP(6)";

// Tells how long a key stays taken from a fence, in the one number that the server returns with a statement.
constexpr std::uint64_t busyMark = std::uint64_t{1} << 62U;

std::int64_t inMicroseconds(std::chrono::milliseconds length) { return microseconds(length).count(); }

// The assignments are made from left to right: each sees the new values of those before it.
std::string claimText(const std::string& table) {
  return "INSERT INTO " + table +
         " (lock_key, version, token, owner, expires_at) "
         "VALUES (?, LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), ?, ?, " +
         inTtl +
         ") ON DUPLICATE KEY UPDATE "
         "version = IF(" +
         isHeld + ", version + 0 * LAST_INSERT_ID(IF(token = VALUES(token), version, " +
         std::to_string(busyMark) + " + " + remaining +
         ")), LAST_INSERT_ID(version + 1)), "
         "token = IF(" +
         isHeld +
         ", token, VALUES(token)), "
         "owner = IF(token = VALUES(token), VALUES(owner), owner), "
         "expires_at = IF(token = VALUES(token), VALUES(expires_at), expires_at)";
}

Holder makeHolder(std::string owner, std::int64_t version, std::int64_t remainingMicroseconds) {
  return {std::move(owner), std::chrono::ceil<std::chrono::milliseconds>(microseconds(remainingMicroseconds)),
          static_cast<Fence>(version)};
}

}  // namespace

LockTable::LockTable(Poco::Data::Session session, const std::string& table)
    : session_(std::move(session)), table_("`" + table + "`") {
  session_ << "SET NAMES binary", now;
  session_ << "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", now;
  // The mode, because others change what the statements mean. A wait that outlives its caller holds up the
  // next one.
  session_ << "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 2", now;
}

void LockTable::create() {
  std::string text = versionSchema;
  text.erase(text.rfind(';'));
  const std::string quotedName = "`" + std::string(tableInSchema) + "`";
  text.replace(text.find(quotedName), quotedName.size(), table_);
  session_ << text, now;
}

Statement LockTable::prepared(const std::string& text) {
  Statement statement(session_);
  statement << text;
  return statement;
}

std::variant<Fence, microseconds> LockTable::claim(const Claim& claim, std::chrono::milliseconds ttl) {
  key_ = claim.key;
  token_ = claim.token.hex();
  owner_ = claim.owner;
  ttl_ = inMicroseconds(ttl);
  if (!claim_) {
    claim_ = prepared(claimText(table_));
    *claim_, use(key_), use(token_), use(owner_), use(ttl_);
  }
  claim_->execute();
  const auto answer = Poco::AnyCast<Poco::UInt64>(session_.getProperty("insertId"));
  if (answer < busyMark) return Fence{answer};
  return microseconds(static_cast<std::int64_t>(answer - busyMark));
}

bool LockTable::release(const Claim& claim) {
  key_ = claim.key;
  token_ = claim.token.hex();
  if (!release_) {
    release_ = prepared("UPDATE " + table_ + " SET " + freed +
                        " WHERE lock_key = ? AND token = ? AND expires_at > UTC_TIMESTAMP(6)");
    *release_, use(key_), use(token_);
  }
  return release_->execute() == 1;
}

void LockTable::renew(std::span<Renewal* const> renewals) {
  std::string whose = " WHERE expires_at > UTC_TIMESTAMP(6) AND (";
  std::vector<std::string> tokens;
  std::vector<std::string> keys;
  for (const Renewal* each : renewals) {
    whose += keys.empty() ? "(lock_key = ? AND token = ?)" : " OR (lock_key = ? AND token = ?)";
    keys.emplace_back(each->claim.key);
    tokens.push_back(each->claim.token.hex());
  }
  whose += ")";
  const auto bindAll = [&](Statement& statement) {
    for (std::size_t i = 0; i < keys.size(); ++i) statement, use(keys[i]), use(tokens[i]);
  };

  Statement update = prepared("UPDATE " + table_ + " SET expires_at = " + inTtl + whose);
  std::int64_t ttl = inMicroseconds(renewals.front()->ttl);
  update, use(ttl);
  bindAll(update);
  const bool all = update.execute() == renewals.size();
  std::vector<std::string> heldBy;
  if (!all) {
    Statement select = prepared("SELECT token FROM " + table_ + whose);
    bindAll(select);
    select, into(heldBy), now;
  }
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    const bool renewed = all || std::ranges::find(heldBy, tokens[i]) != heldBy.end();
    renewals[i]->outcome = renewed ? RenewOutcome::renewed : RenewOutcome::notOwner;
  }
}

std::optional<Holder> LockTable::holder(std::string_view key) {
  std::string owner;
  std::int64_t version = 0;
  std::int64_t left = 0;
  Statement select = prepared(std::string("SELECT owner, version, ") + remaining + " FROM " + table_ +
                              " WHERE lock_key = ? AND " + isHeld);
  select, into(owner), into(version), into(left), bind(std::string(key));
  if (select.execute() == 0) return std::nullopt;
  return makeHolder(std::move(owner), version, left);
}

std::vector<std::pair<std::string, Holder>> LockTable::page(std::string_view prefix,
                                                            const std::string& after) {
  const std::string first(prefix);
  const std::string last = first + std::string(maxKeyBytes, '\xff');
  std::vector<std::string> keys;
  std::vector<std::string> owners;
  std::vector<std::int64_t> versions;
  std::vector<std::int64_t> left;
  session_ << "SELECT lock_key, owner, version, " << remaining << " FROM " << table_
           << " WHERE lock_key > ? AND lock_key BETWEEN ? AND ? AND " << isHeld << " ORDER BY lock_key LIMIT "
           << std::to_string(keysOfPage),
      into(keys), into(owners), into(versions), into(left), bind(after), bind(first), bind(last), now;
  std::vector<std::pair<std::string, Holder>> found;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    found.emplace_back(std::move(keys[i]), makeHolder(std::move(owners[i]), versions[i], left[i]));
  }
  return found;
}

bool LockTable::breakLock(std::string_view key, std::optional<Fence> version) {
  Statement update = prepared("UPDATE " + table_ + " SET " + freed + " WHERE lock_key = ? AND " + isHeld +
                              (version ? " AND version = ?" : ""));
  update, bind(std::string(key));
  if (version) update, bind(static_cast<std::int64_t>(*version));
  return update.execute() == 1;
}

}  // namespace lockkeeper::mysql
