#include "version/share_table.h"

#include <utility>
#include <vector>

#include "session/reply_fault.h"
#include "version/lock_table.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::microseconds;

constexpr int keysClearedAtOnce = 20;

// Tells in an insert id that a key was not shared; above all fences, and below busyMark.
constexpr std::uint64_t freshMark = std::uint64_t{1} << 61U;

// Numbers in session variables are whole ones: a decimal one would be written with its fraction.
//
// The statements have names in braces for what differs: {key}, {token}, … as literals, {which} a condition on
// the columns of a share, {renewed} on those of several.

// Keeps the row of the key from others, if there is one. A share that is alone in it moves to the table of
// shares.
constexpr const char* movedLone = R"sql(
SET @lk_key = NULL;
SELECT lock_key INTO @lk_key FROM {locks} WHERE lock_key = {key} FOR UPDATE{orNot};
DELETE FROM {shares} WHERE lock_key = {key} AND (SELECT {lone} FROM {locks} AS l WHERE l.lock_key = @lk_key);
INSERT INTO {shares} (lock_key, token, owner, weight, fence, expires_us)
  SELECT l.lock_key, l.token, {nameOfLone}, {weightOfLone}, l.version,
      TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', l.expires_at)
    FROM {locks} AS l WHERE l.lock_key = @lk_key AND {lone};
UPDATE {locks} AS l SET token = CONCAT('shares/', {limitOfLone}, '/', {weightOfLone}), owner = {keptMark}
  WHERE l.lock_key = @lk_key AND {lone};)sql";

// Keeps the row of the key from others, and reads it: the time; where there is such a row, its version; where
// the key is shared, the limit and the sum of the weights; how long one claim has all of it; which shares do
// not count, by their ends; whether it is closed to the claim.
constexpr const char* lockedRow = R"sql({movedLone}
SELECT {now}, l.version, IF({shared}, {limitOfRow}, NULL), IF({shared}, {takenOfRow}, 0),
    IF({held} AND NOT {shared}, {remaining}, NULL), IF({shared}, {now}, 9223372036854775807), {closed}
  INTO @lk_now, @lk_version, @lk_limit, @lk_taken, @lk_whole, @lk_until, @lk_closed
  FROM {locks} AS l WHERE l.lock_key = {key};)sql";

// What most claims find: there is room beside all shares that the row counts, or nobody has the key, though
// some of their leases may have ended. The owner '@', which no claim has, tells the assignments behind it
// that the claim fits; they are made from left to right. The insert id is the fence, and {fresh} more where
// the key was not shared: then no share that is left of it counts. It is {busy} when the claim does not fit,
// or has its share already; that is for `claimed`.
constexpr const char* claimedAtOnce = R"sql(START TRANSACTION;
SET @lk_now = {now};
INSERT INTO {locks} (lock_key, version, token, owner, expires_at)
  VALUES ({key}, LAST_INSERT_ID(@lk_now + ({weight} = {limit}) + {fresh}) - {fresh}, 'shares/{limit}/{weight}', '@',
    DATE'1970-01-01' + INTERVAL @lk_now + {ttl} MICROSECOND)
  ON DUPLICATE KEY UPDATE
    owner = IF((NOT ({held}) OR (token LIKE 'shares/{limit}/%' AND SUBSTRING_INDEX(token, '/', -1) + {weight} <= {limit}))
        AND NOT {closed}, '@', COALESCE(NULLIF({marked}, '@'), '')),
    version = IF(owner <> '@', version + 0 * LAST_INSERT_ID({busy}),
      IF({held}, LAST_INSERT_ID(version + (SUBSTRING_INDEX(token, '/', -1) + {weight} >= {limit})),
        LAST_INSERT_ID(version + ({weight} = {limit}) + {fresh}) - {fresh})),
    token = IF(owner <> '@', token,
      CONCAT('shares/{limit}/', {weight} + IF({held}, CAST(SUBSTRING_INDEX(token, '/', -1) AS SIGNED), 0))),
    expires_at = IF(owner <> '@', expires_at,
      IF(token = 'shares/{limit}/{weight}', VALUES(expires_at), GREATEST(expires_at, VALUES(expires_at))));
DELETE FROM {shares} WHERE lock_key = {key} AND LAST_INSERT_ID() BETWEEN {fresh} AND {busy} - 1;
INSERT INTO {shares} (lock_key, token, owner, weight, fence, expires_us)
  SELECT {key}, {token}, {owner}, {weight}, LAST_INSERT_ID() % {fresh}, @lk_now + {ttl} FROM DUAL
  WHERE LAST_INSERT_ID() < {busy}
  ON DUPLICATE KEY UPDATE lock_key = VALUES(lock_key);
UPDATE {locks} AS l SET version = version + 0 * LAST_INSERT_ID({busy}),
    token = CONCAT('shares/{limit}/', {takenOfRow} - {weight})
  WHERE l.lock_key = {key} AND ROW_COUNT() = 0 AND LAST_INSERT_ID() < {busy};
COMMIT)sql";

// A new row begins with the time, as for a claim of the whole key.
constexpr const char* claimed = R"sql(START TRANSACTION;
INSERT INTO {locks} (lock_key, version, token, owner, expires_at) VALUES ({key}, {now}, '', '', UTC_TIMESTAMP(6))
  ON DUPLICATE KEY UPDATE lock_key = lock_key;
{lockedRow}
SELECT (SELECT fence FROM {shares} WHERE lock_key = {key} AND token = {token} AND expires_us > @lk_until),
    GREATEST(0, @lk_taken - {ended}),
    (SELECT COUNT(*) FROM {shares} WHERE lock_key = {key} AND expires_us <= @lk_until)
  INTO @lk_mine, @lk_others, @lk_left_over;
SELECT @lk_mine IS NOT NULL
      OR (@lk_whole IS NULL AND COALESCE(@lk_limit, {limit}) = {limit} AND @lk_others + {weight} <= {limit}
        AND NOT @lk_closed),
    COALESCE(@lk_mine, @lk_version + (@lk_others + {weight} >= {limit}))
  INTO @lk_fits, @lk_fence;
DELETE FROM {shares} WHERE lock_key = {key} AND @lk_left_over > 0 AND expires_us <= @lk_until;
INSERT INTO {shares} (lock_key, token, owner, weight, fence, expires_us)
  SELECT {key}, {token}, {owner}, {weight}, @lk_fence, @lk_now + {ttl} FROM DUAL WHERE @lk_fits
  ON DUPLICATE KEY UPDATE expires_us = GREATEST(expires_us, VALUES(expires_us));
UPDATE {locks} SET version = IF(@lk_fits, GREATEST(version, @lk_fence), version), owner = IF(@lk_fits, '', {keptMark}),
    token = CONCAT('shares/', COALESCE(@lk_limit, {limit}), '/', @lk_others + IF(@lk_fits AND @lk_mine IS NULL, {weight}, 0)),
    expires_at = COALESCE({lastEnd}, expires_at)
  WHERE lock_key = {key} AND (@lk_fits OR (@lk_left_over > 0 AND @lk_limit IS NOT NULL));
SELECT @lk_fits, @lk_fence, @lk_limit,
  COALESCE(@lk_whole, IF(@lk_closed, {priority}, NULL), (SELECT MIN(expires_us) FROM {shares} WHERE lock_key = {key}) - @lk_now);
COMMIT)sql";

// There may be no row of the key: then it changes nothing but what is left over.
constexpr const char* removed = R"sql(START TRANSACTION;
SET @lk_now = {now}, @lk_limit = NULL, @lk_taken = 0, @lk_until = 9223372036854775807;
{lockedRow}
SELECT (SELECT COUNT(*) FROM {shares} WHERE lock_key = {key} AND {which} AND expires_us > @lk_until),
    GREATEST(0, @lk_taken - {ended} - (SELECT CAST(COALESCE(SUM(weight), 0) AS SIGNED) FROM {shares}
      WHERE lock_key = {key} AND {which} AND expires_us > @lk_until)),
    (SELECT COUNT(*) FROM {shares} WHERE lock_key = {key} AND expires_us <= @lk_now)
  INTO @lk_found, @lk_others, @lk_left_over;
DELETE FROM {shares} WHERE lock_key = {key} AND @lk_found > 0 AND {which};
DELETE FROM {shares} WHERE lock_key = {key} AND @lk_left_over > 0 AND expires_us <= @lk_now;
UPDATE {locks} SET owner = {keptMark}, token = IF({lastEnd} IS NULL, '', CONCAT('shares/', @lk_limit, '/', @lk_others)),
    expires_at = COALESCE({lastEnd}, UTC_TIMESTAMP(6))
  WHERE lock_key = {key} AND @lk_limit IS NOT NULL AND @lk_found + @lk_left_over > 0;
SELECT @lk_found;
COMMIT)sql";

// The insert id says that the share counted. Others whose leases have ended stay, and stay counted, until a
// claim needs their room.
constexpr const char* released = R"sql(START TRANSACTION;
SELECT lock_key INTO @lk_key FROM {locks} WHERE lock_key = {key} FOR UPDATE;
DELETE FROM {shares} WHERE lock_key = {key} AND token = {token} AND expires_us > {now};
UPDATE {locks} AS l SET version = LAST_INSERT_ID(version),
    owner = {keptMark},
    expires_at = IF({takenOfRow} <= {weight}, UTC_TIMESTAMP(6), COALESCE({lastEnd}, UTC_TIMESTAMP(6))),
    token = IF({takenOfRow} <= {weight}, '', CONCAT('shares/', {limitOfRow}, '/', {takenOfRow} - {weight}))
  WHERE l.lock_key = {key} AND ROW_COUNT() = 1 AND {shared};
COMMIT)sql";

// After lockedRow: what those have whose leases have ended; when the longest lease ends of the shares that
// there are.
constexpr const char* ended =
    "(SELECT CAST(COALESCE(SUM(weight), 0) AS SIGNED) FROM {shares} WHERE lock_key = {key} AND expires_us <= "
    "@lk_now)";
constexpr const char* lastEnd =
    "(SELECT DATE'1970-01-01' + INTERVAL MAX(expires_us) MICROSECOND FROM {shares} WHERE lock_key = {key})";

// The insert id says that there was such a row, also when it has that limit already.
constexpr const char* resized = R"sql(START TRANSACTION;{movedLone}
UPDATE {locks} AS l SET version = LAST_INSERT_ID(version), token = CONCAT('shares/{limit}/', {takenOfRow})
  WHERE l.lock_key = {key} AND {shared};
COMMIT)sql";

// Asks for the table and for each right on it.
constexpr const char* tried = R"sql(SELECT 1 FROM {shares} LIMIT 0;
INSERT INTO {shares} SELECT * FROM {shares} WHERE FALSE;
UPDATE {shares} SET weight = weight WHERE lock_key = '';
DELETE FROM {shares} WHERE lock_key = '')sql";

constexpr const char* endedKeys = R"sql(
SELECT DISTINCT lock_key FROM {shares} WHERE expires_us <= {now} LIMIT {most})sql";

constexpr const char* foundHolders = R"sql(
SELECT l.lock_key, s.owner, s.expires_us - {now}, s.fence, LEFT(SHA2(s.token, 256), 16), s.weight, {limitOfRow}
  FROM {locks} AS l STRAIGHT_JOIN {shares} AS s ON s.lock_key = l.lock_key
  WHERE {keys} AND {shared} AND s.expires_us > {now})sql";

// In the order of all who lock several.
constexpr const char* lockedRows = R"sql(
SELECT l.lock_key FROM {locks} AS l FORCE INDEX (PRIMARY) WHERE {keys} ORDER BY l.lock_key FOR UPDATE;)sql";

// The second one must find the rows that are locked without a look at others.
constexpr const char* renewed = R"sql(
UPDATE {shares} AS s SET expires_us = {now} + {ttl}
  WHERE s.expires_us > {now} AND {renewed};
UPDATE {locks} AS l FORCE INDEX (PRIMARY) SET l.expires_at = COALESCE(
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
    text += hexLiteral(key);
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
    } else {
      result += filled(common(name), values);
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
  if (name == "takenOfRow") return takenByShares;
  if (name == "lockedRow") return lockedRow;
  if (name == "ended") return ended;
  if (name == "lastEnd") return lastEnd;
  if (name == "movedLone") return movedLone;
  if (name == "lone") return texts_.isLone;
  if (name == "nameOfLone") return nameOfLone;
  if (name == "weightOfLone") return weightOfLone;
  if (name == "limitOfLone") return limitOfLone;
  if (name == "closed") return texts_.isClosed;
  return texts_.keptMark;
}

void ShareTable::check(const std::string& schema) {
  try {
    ask(filled(tried, {}));
  } catch (const NoSuchTable&) {
    if (schema.empty()) throw;
    ask(schema);
    ask(filled(tried, {}));
  }
}

ShareTable::Answer ShareTable::claim(const AcquireRequest& request, LockTexts::Standing standing) {
  const Claim& claim = request.claim;
  const Values values{{"key", hexLiteral(claim.key)},
                      {"token", hexLiteral(claim.token.hex())},
                      {"owner", hexLiteral(claim.owner)},
                      {"weight", std::to_string(claim.share->weight)},
                      {"limit", std::to_string(claim.share->limit)},
                      {"ttl", inMicroseconds(request.ttl)},
                      {"closed", texts_.as(standing).closed},
                      {"marked", texts_.as(standing).marked},
                      {"priority", inMicroseconds(priority)},
                      {"orNot", ""},
                      {"fresh", std::to_string(freshMark)},
                      {"busy", std::to_string(busyMark)}};
  // One that was sent before may have its share already.
  if (!request.resend) {
    const std::uint64_t id = ask(filled(claimedAtOnce, values)).insertId;
    if (id != 0 && id < busyMark)
      return {.granted = true, .fence = Fence{id % freshMark}, .limit = std::nullopt};
  }
  const Reply& reply = ask(filled(claimed, values));
  Answer answer{.granted = reply.number(0) == 1U,
                .fence = reply.number(1).value_or(0),
                .limit = std::nullopt,
                .wait = microseconds(reply.number(3).value_or(0))};
  if (const auto limit = reply.number(2)) answer.limit = static_cast<std::uint32_t>(*limit);
  return answer;
}

bool ShareTable::remove(std::string_view key, const std::string& which, const std::string& orNot) {
  const Values values{{"key", hexLiteral(key)}, {"which", which}, {"orNot", orNot}};
  return ask(filled(removed, values)).number(0).value_or(0) > 0;
}

bool ShareTable::release(const Claim& claim) {
  return ask(filled(released, {{"key", hexLiteral(claim.key)},
                               {"token", hexLiteral(claim.token.hex())},
                               {"weight", std::to_string(claim.share->weight)}}))
             .insertId != 0;
}

bool ShareTable::breakShare(std::string_view key, std::string_view grantId) {
  return remove(key, "LEFT(SHA2(token, 256), 16) = " + hexLiteral(grantId));
}

bool ShareTable::resize(std::string_view key, std::uint32_t limit) {
  return ask(filled(resized, {{"key", hexLiteral(key)}, {"limit", std::to_string(limit)}, {"orNot", ""}}))
             .insertId != 0;
}

void ShareTable::clearEnded(Instant until) {
  std::vector<std::string> keys;
  for (const Reply::Row& row : ask(filled(endedKeys, {{"most", std::to_string(keysClearedAtOnce)}})).rows)
    keys.push_back(row.at(0).value_or(""));
  for (const std::string& key : keys) {
    if (session_.clock().now() >= until) return;
    try {
      remove(key, "FALSE", " NOWAIT");
    } catch (const Contention&) {
      // Somebody uses the key, or keeps its row: the next time.
    }
  }
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
