#include "lock/lock_texts.h"

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "lockkeeper/driver/inspection.h"
#include "session/texts.h"

namespace lockkeeper::postgres {
namespace {

// Of both names together there is no room for a channel's name.
std::string channelOf(const std::string& table) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char each : table) hash = (hash ^ static_cast<unsigned char>(each)) * 1099511628211U;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return std::string("lockkeeper_") + digits;
}

constexpr const char* now = "clock_timestamp()";
// A row that comes back, after it was deleted as unused, begins above all fences that it had.
constexpr const char* firstFence = microsecondsNow;
constexpr const char* remaining = "ceil(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000)::bigint";
// Nobody else has had the key since, even if the lease is over. The clock goes on within a statement, so only
// its WHERE asks whether the lease is over.
constexpr const char* isSame = "l.token = EXCLUDED.token";
constexpr const char* isMine = "(l.token = EXCLUDED.token AND l.expires_at > {now})";

// The server may read a claim late, when its caller has given up.
constexpr const char* isInTime = "({latest}::bigint IS NULL OR {microseconds} < {latest}::bigint)";

// A newcomer waits behind all who wait, one of these behind those before it.
constexpr const char* isClosed = R"((l.waited_until > {now} AND ({place}::bigint IS NULL OR EXISTS (
  SELECT FROM {waiters} AS w WHERE w.lock_key = l.lock_key AND w.place < {place}::bigint AND w.expires_at > {now}))))";

// How long somebody waits besides the claim itself. An earlier statement of the transaction has to lock the
// row: a snapshot from before the lock lacks those who marked the row in the meantime.
constexpr const char* othersWait = R"(coalesce((SELECT max(w.expires_at) FROM {waiters} AS w
  WHERE w.lock_key = l.lock_key AND w.token <> {token}::bytea), '-infinity'))";

// Tells the first one that waits for the key of the row l that it is his turn.
constexpr const char* tellNext = R"((SELECT pg_notify('{channel}', w.place::text) FROM {waiters} AS w
  WHERE w.lock_key = l.lock_key AND w.expires_at > {now} ORDER BY w.place LIMIT 1)::text)";

// What `stage` has sent. A SELECT of its own is evaluated once, and not for each row.
constexpr const char* stagedKeys = "(SELECT current_setting('lockkeeper.keys')::bytea[])::bytea[]";
constexpr const char* stagedTokens = "(SELECT current_setting('lockkeeper.tokens')::bytea[])::bytea[]";
constexpr const char* stagedOwners = "(SELECT current_setting('lockkeeper.owners')::text[])::text[]";
constexpr const char* stagedTtls = "(SELECT current_setting('lockkeeper.ttls')::bigint[])::bigint[]";
constexpr const char* stagedFloors = "(SELECT current_setting('lockkeeper.floors')::bigint[])::bigint[]";

constexpr const char* stageText = R"(SELECT set_config('lockkeeper.keys', $1::text, true),
  set_config('lockkeeper.tokens', $2::text, true), set_config('lockkeeper.owners', $3::text, true),
  set_config('lockkeeper.ttls', $4::text, true), set_config('lockkeeper.floors', $5::text, true))";

constexpr const char* granting = R"( ON CONFLICT (lock_key) DO UPDATE SET
    fences = CASE WHEN {same} THEN 0 ELSE EXCLUDED.fences END,
    fence = l.fence + CASE WHEN {same} THEN 0 ELSE EXCLUDED.fences END,
    token = EXCLUDED.token, owner = EXCLUDED.owner, permits = NULL,
    expires_at = CASE WHEN {same} THEN greatest(l.expires_at, EXCLUDED.expires_at) ELSE EXCLUDED.expires_at END,
    asked = CASE WHEN {same} THEN greatest(l.asked, EXCLUDED.asked) ELSE EXCLUDED.asked END)";

constexpr const char* claimText = R"(WITH claim AS (
  INSERT INTO {locks} AS l (lock_key, fence, fences, token, owner, expires_at, asked)
  SELECT $1::bytea, {firstFence} + $5::int, $5::int, $2::bytea, $3::text,
    {now} + $4::bigint * interval '1 millisecond', $6::bigint WHERE {inTime}{granting},
    waited_until = CASE WHEN $7::bigint IS NULL THEN l.waited_until ELSE {othersWait} END
  WHERE ({mine} OR (l.expires_at <= {now} AND NOT {closed})) AND {inTime}
  RETURNING l.fence, l.fences),
left_queue AS (DELETE FROM {waiters} AS w USING claim
  WHERE $7::bigint IS NOT NULL AND w.lock_key = $1::bytea AND w.token = $2::bytea)
SELECT fence, fences, NULL::bigint FROM claim
UNION ALL SELECT NULL, NULL, {remaining} FROM {locks} AS l WHERE l.lock_key = $1::bytea AND NOT EXISTS (SELECT FROM claim))";

constexpr const char* claimAllText = R"(WITH claim AS (
  INSERT INTO {locks} AS l (lock_key, fence, fences, token, owner, expires_at, asked)
  SELECT lock_key, {firstFence} + 1, 1, token, owner, {now} + ttl * interval '1 millisecond', $1::bigint
  FROM unnest({keys}, {tokens}, {owners}, {ttls}) WITH ORDINALITY AS asked (lock_key, token, owner, ttl, number)
  WHERE {inTime} ORDER BY number{granting}
  WHERE ({mine} OR (l.expires_at <= {now} AND l.waited_until <= {now})) AND {inTime}
  RETURNING l.lock_key, l.fence)
SELECT encode(lock_key, 'hex'), fence, NULL::bigint FROM claim
UNION ALL SELECT encode(l.lock_key, 'hex'), NULL, {remaining} FROM {locks} AS l
  WHERE l.lock_key = ANY ({keys}) AND l.lock_key NOT IN (SELECT lock_key FROM claim))";

constexpr const char* undoRestText = R"(WITH asked AS (
  SELECT * FROM unnest({keys}, {tokens}) WITH ORDINALITY AS a (lock_key, token, number))
UPDATE {locks} AS l SET token = '', owner = '', expires_at = {now} FROM asked AS a
WHERE l.lock_key = a.lock_key AND l.token = a.token AND a.number > (SELECT min(b.number) FROM asked AS b
  WHERE NOT EXISTS (SELECT FROM {locks} AS m WHERE m.lock_key = b.lock_key AND m.token = b.token)))";

// One that a later renewal has overtaken leaves the end as it is.
constexpr const char* renewedEnd = R"(CASE WHEN {row}.asked <= $1::bigint THEN greatest(
  {now} + a.ttl * interval '1 millisecond', CASE WHEN a.floor <> 0 THEN {row}.expires_at END) ELSE {row}.expires_at END)";

// All who lock several rows lock them in the order of their keys. A renewal that a later one has overtaken
// changes nothing, and is told so: the key is still held.
constexpr const char* renewText = R"(WITH asked AS (
  SELECT * FROM unnest({keys}, {tokens}, {ttls}, {floors}) AS a (lock_key, token, ttl, floor)),
locked AS (SELECT l.lock_key FROM {locks} AS l JOIN asked USING (lock_key) ORDER BY l.lock_key FOR UPDATE OF l)
UPDATE {locks} AS l SET asked = greatest(l.asked, $1::bigint), expires_at = {renewedEnd}
FROM asked AS a JOIN locked USING (lock_key)
WHERE l.lock_key = a.lock_key AND l.token = a.token AND l.expires_at > {now}
RETURNING encode(l.token, 'hex'), l.asked = $1::bigint)";

constexpr const char* releaseText = R"(UPDATE {locks} AS l SET token = '', owner = '', expires_at = {now}
WHERE l.lock_key = $1::bytea AND l.token = $2::bytea AND l.expires_at > {now}
RETURNING CASE WHEN l.waited_until > {now} THEN {tellNext} END)";

constexpr const char* releaseAllText = R"(WITH asked AS (
  SELECT * FROM unnest({keys}, {tokens}) AS a (lock_key, token)),
locked AS (SELECT l.lock_key FROM {locks} AS l JOIN asked USING (lock_key) ORDER BY l.lock_key FOR UPDATE OF l)
UPDATE {locks} AS l SET token = '', owner = '', expires_at = {now} FROM asked AS a JOIN locked USING (lock_key)
WHERE l.lock_key = a.lock_key AND l.token = a.token AND l.expires_at > {now}
RETURNING encode(a.token, 'hex'), CASE WHEN l.waited_until > {now} THEN {tellNext} END)";

constexpr const char* makeRowText = R"(INSERT INTO {locks} (lock_key, fence)
VALUES ($1::bytea, {firstFence}) ON CONFLICT (lock_key) DO NOTHING)";

// The row is locked, so that nobody else changes it or its shares. A share that is found has its lease
// extended.
constexpr const char* claimShareText = R"(WITH others AS (
  SELECT coalesce(sum(s.weight), 0) AS taken, min(s.expires_at) AS first_end FROM {shares} AS s
  WHERE s.lock_key = $1::bytea AND s.token <> $2::bytea AND s.expires_at > {now}),
verdict AS (
  SELECT l.fence + CASE WHEN o.taken + $5::int >= $6::int THEN 1 ELSE 0 END AS fence, o.taken, o.first_end,
    CASE WHEN l.expires_at > {now} THEN l.permits END AS named, l.expires_at > {now} AND l.token <> '' AS is_whole,
    (SELECT s.fence FROM {shares} AS s WHERE s.lock_key = $1::bytea AND s.token = $2::bytea AND s.expires_at > {now}
      AND l.token = '') AS found, {closed} AS is_closed
  FROM {locks} AS l, others AS o WHERE l.lock_key = $1::bytea),
fitting AS (SELECT *, (found IS NOT NULL OR NOT is_whole AND coalesce(named, $6::int) = $6::int
  AND taken + $5::int <= $6::int AND NOT is_closed) AND {inTime} AS fits FROM verdict),
granted AS (INSERT INTO {shares} AS s (lock_key, token, owner, weight, fence, expires_at, asked)
  SELECT $1::bytea, $2::bytea, $3::text, $5::int, coalesce(found, fence), {now} + $4::bigint * interval '1 millisecond',
    $7::bigint FROM fitting WHERE fits
  ON CONFLICT (lock_key, token) DO UPDATE SET fence = EXCLUDED.fence, expires_at = greatest(s.expires_at, EXCLUDED.expires_at),
    asked = greatest(s.asked, EXCLUDED.asked) RETURNING s.fence, s.expires_at),
row_changed AS (UPDATE {locks} AS l SET token = '', owner = '', permits = coalesce(f.named, $6::int), fence = greatest(l.fence, g.fence),
  expires_at = greatest(CASE WHEN f.named IS NOT NULL THEN l.expires_at END, g.expires_at),
  waited_until = CASE WHEN $8::bigint IS NULL THEN l.waited_until ELSE {othersWait} END
  FROM fitting AS f, granted AS g WHERE l.lock_key = $1::bytea),
left_queue AS (DELETE FROM {waiters} AS w USING granted
  WHERE $8::bigint IS NOT NULL AND w.lock_key = $1::bytea AND w.token = $2::bytea),
ended AS (DELETE FROM {shares} AS s WHERE s.lock_key = $1::bytea AND s.token <> $2::bytea AND s.expires_at <= {now})
SELECT f.fits, coalesce(f.found, f.fence), f.named,
  ceil(extract(epoch FROM CASE WHEN f.is_whole THEN l.expires_at ELSE f.first_end END - {now}) * 1000)::bigint,
  CASE WHEN f.fits AND l.waited_until > {now} THEN (SELECT pg_notify('{channel}', w.place::text) FROM {waiters} AS w
    WHERE w.lock_key = l.lock_key AND w.token <> $2::bytea AND w.expires_at > {now} ORDER BY w.place LIMIT 1)::text END
FROM fitting AS f, {locks} AS l WHERE l.lock_key = $1::bytea)";

constexpr const char* renewSharesText = R"(UPDATE {shares} AS s
SET asked = greatest(s.asked, $1::bigint), expires_at = {renewedEnd}
FROM unnest({keys}, {tokens}, {ttls}, {floors}) AS a (lock_key, token, ttl, floor), {locks} AS l
WHERE s.lock_key = a.lock_key AND s.token = a.token AND s.expires_at > {now}
  AND l.lock_key = a.lock_key AND l.token = '' AND l.permits IS NOT NULL AND l.expires_at > {now}
RETURNING encode(s.token, 'hex'), s.asked = $1::bigint)";

constexpr const char* extendRowsText = R"(UPDATE {locks} AS l SET expires_at =
  coalesce((SELECT max(s.expires_at) FROM {shares} AS s WHERE s.lock_key = l.lock_key), l.expires_at)
WHERE l.lock_key = ANY ({keys}) AND l.token = '' AND l.permits IS NOT NULL AND l.expires_at > {now})";

constexpr const char* shrinkRowText = R"(UPDATE {locks} AS l SET expires_at =
  coalesce((SELECT max(s.expires_at) FROM {shares} AS s WHERE s.lock_key = l.lock_key), {now})
WHERE l.lock_key = $1::bytea AND l.token = '' AND l.permits IS NOT NULL AND l.expires_at > {now}
RETURNING CASE WHEN l.waited_until > {now} THEN {tellNext} END)";

constexpr const char* releaseShareText = R"(DELETE FROM {shares} AS s
WHERE s.lock_key = $1::bytea AND s.token = $2::bytea AND s.expires_at > {now} RETURNING 1)";

constexpr const char* enterQueueText = R"(WITH gone AS (
  DELETE FROM {waiters} AS w WHERE w.lock_key = $1::bytea AND w.token <> $2::bytea
    AND w.expires_at < {now} - interval '1 minute')
INSERT INTO {waiters} AS w (lock_key, token, place, owner, weight, permits, since, expires_at)
SELECT $1::bytea, $2::bytea, nextval('{places}') + $6::bigint, $3::text, $4::int, $5::int,
  {now}, {now} + $7::bigint * interval '1 millisecond' WHERE {inTime}
ON CONFLICT (lock_key, token) DO UPDATE SET expires_at = EXCLUDED.expires_at
RETURNING w.place)";

// Of those who stay, one marks the row for all.
constexpr const char* markRowText = R"(UPDATE {locks} AS l
SET waited_until = greatest(l.waited_until, {now} + $2::bigint * interval '1 millisecond') WHERE l.lock_key = $1::bytea
  AND ($3::boolean OR l.waited_until < {now} + $2::bigint * interval '1 millisecond' * 2 / 3))";

constexpr const char* clearMarkText = R"(UPDATE {locks} AS l SET waited_until = {othersWait}
WHERE l.lock_key = $1::bytea RETURNING CASE WHEN l.expires_at <= {now} OR l.permits IS NOT NULL THEN {tellNext} END)";

constexpr const char* listWaitersText = R"(SELECT encode(w.lock_key, 'hex'), w.owner,
  (extract(epoch FROM {now} - w.since) * 1000)::bigint, w.weight, w.permits
FROM unnest($1::bytea[]) AS a (lock_key), LATERAL (SELECT * FROM {waiters} AS w WHERE w.lock_key = a.lock_key
  AND w.expires_at > {now} ORDER BY w.place LIMIT {most}) AS w ORDER BY w.lock_key, w.place)";

constexpr const char* heldColumns = R"(SELECT encode(l.lock_key, 'hex'), coalesce(s.owner, l.owner),
  ceil(extract(epoch FROM coalesce(s.expires_at, l.expires_at) - {now}) * 1000)::bigint, coalesce(s.fence, l.fence),
  left(encode(sha256(coalesce(s.token, l.token)), 'hex'), 16), s.weight, l.permits
FROM {locks} AS l LEFT JOIN {shares} AS s ON s.lock_key = l.lock_key AND l.token = '' AND s.expires_at > {now}
WHERE l.expires_at > {now} AND (l.token <> '' OR s.token IS NOT NULL) AND )";

// Tells the client that has claimed with the token of the row {row}.
constexpr const char* tellLoss = "pg_notify('{lostChannel}', encode({row}.token, 'hex'))::text";

constexpr const char* breakWholeText = R"(WITH held AS (SELECT l.lock_key, l.token FROM {locks} AS l
  WHERE l.lock_key = $1::bytea AND l.token <> '' AND l.expires_at > {now} AND ($2::bigint IS NULL OR l.fence = $2::bigint)
  FOR UPDATE)
UPDATE {locks} AS l SET token = '', owner = '', expires_at = {now} FROM held AS h WHERE l.lock_key = h.lock_key
RETURNING {tellLoss}, CASE WHEN l.waited_until > {now} THEN {tellNext} END)";

constexpr const char* breakSharesText =
    R"(DELETE FROM {shares} AS s WHERE s.lock_key = $1::bytea AND s.expires_at > {now}
  AND ($2::text IS NULL OR left(encode(sha256(s.token), 'hex'), 16) = $2::text)
RETURNING {tellLoss})";

constexpr const char* resizeText = R"(UPDATE {locks} AS l SET permits = $2::int
WHERE l.lock_key = $1::bytea AND l.token = '' AND l.permits IS NOT NULL AND l.expires_at > {now})";

// Both the end of its last lease and its fence must be a day old: see firstFence. About sixteen pages are
// looked at.
constexpr const char* clearUnusedText = R"(DELETE FROM {locks} AS l WHERE l.lock_key IN (
  SELECT k.lock_key FROM (SELECT lock_key, expires_at, waited_until, fence FROM {locks} TABLESAMPLE SYSTEM
    ((SELECT least(100, 1600.0 / greatest(c.relpages, 1)) FROM pg_class AS c WHERE c.oid = '{locks}'::regclass))) AS k
  WHERE k.expires_at < {now} - interval '1 day' AND k.waited_until < {now} - interval '1 day'
    AND k.fence < {firstFence} - 86400000000 LIMIT 100)
AND l.expires_at < {now} - interval '1 day' AND l.waited_until < {now} - interval '1 day'
AND l.fence < {firstFence} - 86400000000)";

constexpr const char* clearEndedText =
    R"(DELETE FROM {ended} AS e WHERE e.expires_at < {now} - interval '1 day'
AND (e.lock_key, e.token) IN (SELECT k.lock_key, k.token FROM (SELECT lock_key, token, expires_at FROM {ended} TABLESAMPLE SYSTEM
    ((SELECT least(100, 1600.0 / greatest(c.relpages, 1)) FROM pg_class AS c WHERE c.oid = '{ended}'::regclass))) AS k
  WHERE k.expires_at < {now} - interval '1 day' LIMIT 100))";

}  // namespace

LockTexts::LockTexts(const std::string& schema, const std::string& table)
    : locks("\"" + schema + "\".\"" + table + "\""),
      shares("\"" + schema + "\".\"" + table + "_shares\""),
      waiters("\"" + schema + "\".\"" + table + "_waiters\""),
      places("\"" + schema + "\".\"" + table + "_places\""),
      channel(channelOf(locks)),
      lostChannel(channel + "_lost") {
  const auto text = [this](const std::string& pattern, Names own = {}) {
    std::string all = filled(pattern, {{"granting", granting},
                                       {"same", isSame},
                                       {"mine", isMine},
                                       {"closed", isClosed},
                                       {"inTime", isInTime},
                                       {"othersWait", othersWait},
                                       {"tellNext", tellNext},
                                       {"tellLoss", tellLoss},
                                       {"remaining", remaining},
                                       {"renewedEnd", renewedEnd}});
    all = filled(filled(std::move(all), own), {{"place", "$7"}, {"latest", "$8"}, {"token", "$2"}});
    return filled(std::move(all), {{"locks", locks},
                                   {"shares", shares},
                                   {"waiters", waiters},
                                   {"places", places},
                                   {"channel", channel},
                                   {"lostChannel", lostChannel},
                                   {"keys", stagedKeys},
                                   {"tokens", stagedTokens},
                                   {"owners", stagedOwners},
                                   {"ttls", stagedTtls},
                                   {"floors", stagedFloors},
                                   {"firstFence", firstFence},
                                   {"microseconds", microsecondsNow},
                                   {"now", now}});
  };
  stage = text(stageText);
  claim = text(claimText);
  claimAll = text(claimAllText, {{"latest", "$2"}});
  undoRest = text(undoRestText);
  renew = text(renewText, {{"row", "l"}});
  release = text(releaseText);
  releaseAll = text(releaseAllText);
  makeRow = text(makeRowText);
  lockRow = text("SELECT FROM {locks} AS l WHERE l.lock_key = $1::bytea FOR UPDATE");
  lockRows = text("SELECT FROM {locks} AS l WHERE l.lock_key = ANY ({keys}) ORDER BY l.lock_key FOR UPDATE");
  claimShare = text(claimShareText, {{"place", "$8"}, {"latest", "$9"}});
  renewShares = text(renewSharesText, {{"row", "s"}});
  extendRows = text(extendRowsText);
  releaseShare = text(releaseShareText);
  shrinkRow = text(shrinkRowText);
  enterQueue = text(enterQueueText);
  markRow = text(markRowText);
  leaveQueue = text("DELETE FROM {waiters} WHERE lock_key = $1::bytea AND token = $2::bytea");
  clearMark = text(clearMarkText);
  listWaiters = text(listWaitersText, {{"most", std::to_string(WaiterBrowsable::mostListed)}});
  holders = text(heldColumns + std::string("l.lock_key = $1::bytea ORDER BY 3 DESC"));
  page =
      text(heldColumns + std::string("l.lock_key > $1::bytea AND l.lock_key BETWEEN $2::bytea AND $3::bytea "
                                     "ORDER BY l.lock_key, 3 DESC LIMIT 1000"));
  breakWhole = text(breakWholeText, {{"row", "h"}});
  breakShares = text(breakSharesText, {{"row", "s"}});
  resize = text(resizeText);
  clearUnused = {text(clearUnusedText), text(clearEndedText, {{"ended", shares}}),
                 text(clearEndedText, {{"ended", waiters}})};
}

}  // namespace lockkeeper::postgres
