#include "version/share_table.h"

#include <utility>
#include <vector>

#include "session/reply_fault.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::microseconds;

constexpr int keysClearedAtOnce = 20;

// The statements have names in braces for what differs: {key}, {token}, … as literals, {which} a condition on
// the columns of a share, {renewed} on those of several.

// Keeps the row of the key from others, and reads it: the time; nothing where there is no such row; nothing
// where the key is not shared; how long one claim has all of it.
constexpr const char* lockedRow = R"sql(
SELECT {now}, MAX(l.version), MAX(IF({shared}, {limitOfRow}, NULL)), MAX(IF({held} AND NOT {shared}, {remaining}, NULL))
  INTO @lk_now, @lk_version, @lk_limit, @lk_whole
  FROM {locks} AS l WHERE l.lock_key = {key} FOR UPDATE;)sql";

// A new row begins with the time, as for a claim of the whole key. What counts of the shares is what others
// have; the rest is left over.
constexpr const char* claimed = R"sql(START TRANSACTION;
INSERT INTO {locks} (lock_key, version, token, owner, expires_at) VALUES ({key}, {now}, '', '', UTC_TIMESTAMP(6))
  ON DUPLICATE KEY UPDATE lock_key = lock_key;
{lockedRow}
SELECT mine IS NOT NULL
      OR (@lk_whole IS NULL AND COALESCE(@lk_limit, {limit}) = {limit} AND taken + {weight} <= {limit}),
    COALESCE(mine, @lk_version + (taken + {weight} >= {limit})),
    GREATEST(COALESCE(last_end, 0), @lk_now + {ttl}),
    COALESCE(@lk_whole, next_end - @lk_now),
    left_over
  INTO @lk_fits, @lk_fence, @lk_ends, @lk_wait, @lk_left_over
  FROM (SELECT COALESCE(SUM(IF({counts}, weight, 0)), 0) AS taken,
      MAX(IF({counts} AND token = {token}, fence, NULL)) AS mine,
      MAX(IF({counts} AND token <> {token}, expires_us, NULL)) AS last_end,
      MIN(IF({counts}, expires_us, NULL)) AS next_end,
      COUNT(IF({counts}, NULL, 1)) AS left_over
    FROM {shares} WHERE lock_key = {key}) AS present;
DELETE FROM {shares} WHERE lock_key = {key} AND @lk_left_over > 0 AND NOT ({counts});
INSERT INTO {shares} (lock_key, token, owner, weight, fence, expires_us)
  SELECT {key}, {token}, {owner}, {weight}, @lk_fence, @lk_now + {ttl} FROM DUAL WHERE @lk_fits
  ON DUPLICATE KEY UPDATE expires_us = VALUES(expires_us);
UPDATE {locks} SET version = GREATEST(version, @lk_fence), token = CONCAT('shares/', COALESCE(@lk_limit, {limit})),
    owner = '', expires_at = DATE'1970-01-01' + INTERVAL @lk_ends MICROSECOND
  WHERE lock_key = {key} AND @lk_fits;
SELECT @lk_fits, @lk_fence, @lk_limit, @lk_wait;
COMMIT)sql";

constexpr const char* removed = R"sql(START TRANSACTION;
{lockedRow}
SELECT COUNT(IF({counts} AND {which}, 1, NULL)), MAX(IF({counts} AND NOT {which}, expires_us, NULL)),
    COUNT(IF(expires_us <= @lk_now, 1, NULL))
  INTO @lk_found, @lk_ends, @lk_left_over
  FROM {shares} WHERE lock_key = {key};
DELETE FROM {shares} WHERE lock_key = {key} AND @lk_found > 0 AND {which};
DELETE FROM {shares} WHERE lock_key = {key} AND @lk_left_over > 0 AND expires_us <= @lk_now;
UPDATE {locks} SET token = IF(@lk_ends IS NULL, '', token),
    expires_at = DATE'1970-01-01' + INTERVAL COALESCE(@lk_ends, @lk_now) MICROSECOND
  WHERE lock_key = {key} AND @lk_found > 0;
SELECT @lk_found;
COMMIT)sql";

// The insert id says that there was such a row, also when it has that limit already.
constexpr const char* resized = R"sql(
UPDATE {locks} AS l SET version = LAST_INSERT_ID(version), token = 'shares/{limit}'
  WHERE l.lock_key = {key} AND {shared})sql";

constexpr const char* endedKeys = R"sql(
SELECT DISTINCT lock_key FROM {shares} WHERE expires_us <= {now} LIMIT {most})sql";

constexpr const char* foundHolders = R"sql(
SELECT l.lock_key, s.owner, s.expires_us - {now}, s.fence, LEFT(SHA2(s.token, 256), 16), s.weight, {limitOfRow}
  FROM {locks} AS l STRAIGHT_JOIN {shares} AS s ON s.lock_key = l.lock_key
  WHERE {keys} AND {shared} AND s.expires_us > {now})sql";

// In the order of all who lock several.
constexpr const char* lockedRows = R"sql(
SELECT l.lock_key FROM {locks} AS l FORCE INDEX (PRIMARY) WHERE {keys} ORDER BY l.lock_key FOR UPDATE;)sql";

constexpr const char* renewed = R"sql(
UPDATE {shares} AS s SET expires_us = {now} + {ttl}
  WHERE s.expires_us > {now} AND {renewed}
    AND EXISTS (SELECT 1 FROM {locks} AS l WHERE l.lock_key = s.lock_key AND {shared});
UPDATE {locks} AS l SET l.expires_at = COALESCE(
    (SELECT DATE'1970-01-01' + INTERVAL MAX(s.expires_us) MICROSECOND FROM {shares} AS s WHERE s.lock_key = l.lock_key),
    l.expires_at)
  WHERE {keys} AND {shared})sql";

constexpr const char* foundTokens = R"sql(
SELECT s.token FROM {locks} AS l STRAIGHT_JOIN {shares} AS s ON s.lock_key = l.lock_key
  WHERE {keys} AND {shared} AND s.expires_us > {now} AND {renewed})sql";

/// One of these keys, as a condition on the rows of the table of locks.
std::string isOneOf(const std::set<std::string_view>& keys) {
  std::string text = "l.lock_key IN (";
  for (const std::string_view key : keys) {
    if (text.back() != '(') text += ',';
    addHexadecimal(text, key);
  }
  return text + ")";
}

std::string isOneOf(std::span<Renewal* const> renewals) {
  std::set<std::string_view> keys;
  for (const Renewal* each : renewals) keys.insert(each->claim.key);
  return isOneOf(keys);
}

Holder holderIn(const Reply::Row& row) {
  return {.owner = row.at(1).value_or(""),
          .remaining = std::chrono::ceil<std::chrono::milliseconds>(microseconds(numberIn(row.at(2)))),
          .fence = static_cast<Fence>(numberIn(row.at(3))),
          .grantId = row.at(4).value_or(""),
          .share = Share{.weight = static_cast<std::uint32_t>(numberIn(row.at(5))),
                         .limit = static_cast<std::uint32_t>(numberIn(row.at(6)))}};
}

}  // namespace

std::string ShareTable::filled(std::string_view text, const Values& values) const {
  std::string result;
  for (auto open = text.find('{'); open != text.npos; open = text.find('{')) {
    const auto close = text.find('}', open);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    result += text.substr(0, open);
    text.remove_prefix(close + 1);
    if (const auto value = values.find(name); value != values.end()) {
      result += value->second;
    } else if (name == "lockedRow") {
      result += filled(lockedRow, values);
    } else {
      result += common(name);
    }
  }
  return result += text;
}

std::string_view ShareTable::common(std::string_view name) const {
  if (name == "locks") return texts_.table;
  if (name == "shares") return texts_.shares;
  if (name == "now") return microsecondsNow;
  if (name == "held") return isHeld;
  if (name == "remaining") return remaining;
  if (name == "shared") return isShared;
  if (name == "limitOfRow") return limitOfShares;
  return "expires_us > @lk_now AND @lk_limit IS NOT NULL";  // counts: of a share, after lockedRow
}

void ShareTable::make() {
  try {
    ask("SELECT 1 FROM " + texts_.shares + " LIMIT 0");
    return;
  } catch (const NoSuchTable&) {
  }
  try {
    ask(texts_.sharesSchema);
  } catch (const Contention&) {  // others make it at the same moment, which MySQL calls a deadlock
  }
}

ShareTable::Answer ShareTable::claim(const Claim& claim, std::chrono::milliseconds ttl) {
  const std::string batch = filled(claimed, {{"key", literal(claim.key)},
                                             {"token", literal(claim.token.hex())},
                                             {"owner", literal(claim.owner)},
                                             {"weight", std::to_string(claim.share->weight)},
                                             {"limit", std::to_string(claim.share->limit)},
                                             {"ttl", inMicroseconds(ttl)}});
  const Reply& reply = ask(batch);
  Answer answer{.granted = reply.number(0) == 1U,
                .fence = reply.number(1).value_or(0),
                .limit = std::nullopt,
                .wait = microseconds(reply.number(3).value_or(0))};
  if (const auto limit = reply.number(2)) answer.limit = static_cast<std::uint32_t>(*limit);
  return answer;
}

bool ShareTable::remove(std::string_view key, const std::string& which) {
  return ask(filled(removed, {{"key", literal(key)}, {"which", which}})).number(0).value_or(0) > 0;
}

bool ShareTable::release(const Claim& claim) {
  return remove(claim.key, "token = " + literal(claim.token.hex()));
}

bool ShareTable::breakShare(std::string_view key, std::string_view grantId) {
  return remove(key, "LEFT(SHA2(token, 256), 16) = " + literal(grantId));
}

bool ShareTable::resize(std::string_view key, std::uint32_t limit) {
  return ask(filled(resized, {{"key", literal(key)}, {"limit", std::to_string(limit)}})).insertId != 0;
}

void ShareTable::clearEnded() {
  std::vector<std::string> keys;
  for (const Reply::Row& row : ask(filled(endedKeys, {{"most", std::to_string(keysClearedAtOnce)}})).rows)
    keys.push_back(row.at(0).value_or(""));
  for (const std::string& key : keys) remove(key, "FALSE");
}

std::vector<Holder> ShareTable::holders(std::string_view key) {
  std::vector<Holder> found;
  const std::string rows = filled(foundHolders, {{"keys", isOneOf({key})}}) + " ORDER BY s.expires_us";
  for (const Reply::Row& row : ask(rows).rows) found.push_back(holderIn(row));
  return found;
}

std::map<std::string, Holder> ShareTable::longest(const std::set<std::string_view>& keys) {
  std::map<std::string, Holder> found;
  const std::string rows = filled(foundHolders, {{"keys", isOneOf(keys)}}) +
                           " AND l.expires_at = DATE'1970-01-01' + INTERVAL s.expires_us MICROSECOND";
  for (const Reply::Row& row : ask(rows).rows) found.emplace(row.at(0).value_or(""), holderIn(row));
  return found;
}

std::optional<ShareTable::Tokens> ShareTable::renewAll(Renewals renewals, SessionPool& cancelling) {
  ask("START TRANSACTION");
  const std::string locked = filled(lockedRows, {{"keys", isOneOf(renewals)}});
  return tokensIn(askOrCancel(locked + update(renewals) + ";" + select(renewals) + ";COMMIT", cancelling));
}

std::string ShareTable::update(Renewals renewals) const {
  return filled(renewed,
                {{"keys", isOneOf(renewals)}, {"ttl", ttls(renewals)}, {"renewed", anyOf(renewals, "s.")}});
}

std::string ShareTable::select(Renewals renewals) const {
  return filled(foundTokens, {{"keys", isOneOf(renewals)}, {"renewed", anyOf(renewals, "s.")}});
}

}  // namespace lockkeeper::mysql
