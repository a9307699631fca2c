#include "limit/rate_texts.h"

#include <string_view>

#include "schema.h"
#include "session/texts.h"

namespace lockkeeper::postgres {
namespace {

// Local, so it ends with the transaction; it is in force before the statement locks a row.
constexpr const char* boundsWait = "set_config('lock_timeout', $1::text, true) <> ''";
// Of all rows together: in force from the next statement on, until one says endsBound.
constexpr const char* boundStatementText = "SELECT set_config('statement_timeout', $1::text, true)";
constexpr const char* endsBound =
    "($1::text IS NOT NULL AND set_config('statement_timeout', '30s', true) <> '')";

// As lists in which the names of a row's columns are missing.
constexpr const char* isSameKey = "{one}.family = {other}.family AND {one}.rate_key = {other}.rate_key";
constexpr const char* canBeLimit =
    "({first} BETWEEN 0 AND 9007199254740991 AND {second} BETWEEN 0 AND 9007199254740991 AND "
    "coalesce(0 <= ALL ({admitted}) AND 9007199254740992 > ALL ({admitted}), true))";

// The charges, on one time for all. NUMERIC holds every product exactly. unit is what the cost takes of a
// bucket, in parts of a µs, or of a window.
constexpr const char* askedText = R"(asked AS MATERIALIZED (
  SELECT a.family, a.rate_key, a.cost, a.times, a.period, a.parts, a.room * a.parts + a.room_parts AS room, a.number,
    a.cost * CASE a.family WHEN 0 THEN a.period ELSE 1 END AS unit, (SELECT {now}) AS now
  FROM unnest($2::smallint[], $3::bytea[], $4::numeric[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[],
    $9::numeric[]) WITH ORDINALITY AS a (family, rate_key, cost, times, period, parts, room, room_parts, number)
  WHERE {begins}))";

// Of a charge a and a row: what is used (of a bucket, when it is full, at the earliest now), and how often
// the cost fits. A bucket's second number may be of a law with other parts: less than a µs, rounded up. A
// clock that goes back opens no earlier window of the calendar again. OFFSET 0 keeps the planner from
// computing something twice.
constexpr const char* judged = R"(LATERAL (SELECT {canBeLimit} AS can_be_limit,
    greatest({first} - {first} % a.period, a.now - a.now % a.period) AS begun,
    CASE a.family WHEN 1 THEN
      ARRAY(SELECT t FROM unnest({admitted}) AS t WHERE t > (a.now - a.period)::bigint) END AS admitted OFFSET 0) AS k,
  LATERAL (SELECT CASE a.family
      WHEN 0 THEN greatest({first} * a.parts + least({second}, a.parts), a.now * a.parts)
      WHEN 1 THEN cardinality(k.admitted)
      ELSE CASE WHEN {first} >= k.begun THEN {second} ELSE 0 END END AS used,
    CASE a.family WHEN 0 THEN a.now * a.parts ELSE 0 END AS base OFFSET 0) AS u,
  LATERAL (SELECT CASE WHEN NOT k.can_be_limit THEN 0 WHEN a.cost = 0 THEN a.times
      ELSE greatest(least(a.times, div(u.base + a.room - u.used, a.unit)), 0) END::bigint AS granted OFFSET 0) AS g)";

// What becomes of the row: s. It stays as it is unless `changes`.
constexpr const char* changed =
    R"(LATERAL (SELECT CASE WHEN k.can_be_limit AND ({changes}) THEN a.family END AS family,
    {total} AS used, CASE a.family WHEN 1 THEN {log} END AS admitted OFFSET 0) AS t,
  LATERAL (SELECT CASE t.family WHEN 0 THEN div(t.used, a.parts)::bigint WHEN 1 THEN t.used::bigint
      WHEN 2 THEN k.begun::bigint ELSE {first} END AS first,
    CASE t.family WHEN 0 THEN mod(t.used, a.parts)::bigint WHEN 1 THEN coalesce(t.admitted[cardinality(t.admitted)], 0)
      WHEN 2 THEN t.used::bigint ELSE {second} END AS second,
    CASE t.family WHEN 1 THEN t.admitted ELSE {admitted} END AS admitted,
    CASE t.family WHEN 0 THEN div(t.used + a.parts - 1, a.parts)::bigint
      WHEN 1 THEN coalesce(t.admitted[cardinality(t.admitted)] + a.period::bigint, 0)
      WHEN 2 THEN (k.begun + a.period)::bigint ELSE {unused_from} END AS unused_from) AS s)";

// A sliding window forgets what has left it, whatever comes. One that is earlier than the last, where the
// clock went back, counts as late as that.
struct Change {
  const char* changes;
  const char* total;
  const char* log;
};
constexpr Change charging{"{granted} * a.cost > 0 OR a.family = 1", "u.used + {granted} * a.unit",
                          "k.admitted || array_fill(greatest(a.now, k.admitted[cardinality(k.admitted)]), "
                          "ARRAY[({granted} * a.cost)::int])"};
constexpr Change refunding{
    "u.used > u.base AND coalesce(u.used = $10::numeric * a.parts + $11::numeric, true)",
    "greatest(u.used - a.unit, 0)", "k.admitted[(a.cost::int + 1):]"};

constexpr const char* chargeText = R"(WITH {asked}, charged AS (
  INSERT INTO {rates} AS r (family, rate_key, first, second, admitted, unused_from, granted)
  SELECT a.family, a.rate_key, s.first, s.second, s.admitted, s.unused_from, g.granted FROM asked AS a, {new}
  ON CONFLICT (family, rate_key) DO UPDATE SET (first, second, admitted, unused_from, granted) =
    (SELECT s.first, s.second, s.admitted, s.unused_from, g.granted FROM asked AS a, {old})
  RETURNING r.first, r.second, r.admitted, r.granted)
SELECT r.granted, a.now, r.first, r.second, {leavesFirst}, {canBeLimit} FROM charged AS r, asked AS a)";

// WHERE false: the rows are locked nevertheless.
constexpr const char* lockRowsText =
    R"(INSERT INTO {rates} AS r (family, rate_key)
SELECT a.family, a.rate_key FROM unnest($1::smallint[], $2::bytea[]) AS a (family, rate_key)
ORDER BY a.family, a.rate_key ON CONFLICT (family, rate_key) DO UPDATE SET granted = r.granted WHERE false)";

constexpr const char* chargeAllText = R"(WITH {asked},
verdict AS MATERIALIZED (SELECT bool_and(g.granted > 0) AS fits FROM asked AS a JOIN {rates} AS r ON {ofCharge}, {judged}),
decided AS MATERIALIZED (SELECT a.*, g.granted, k.can_be_limit, s.*
  FROM verdict AS v, asked AS a JOIN {rates} AS r ON {ofCharge}, {old}),
changed AS (UPDATE {rates} AS r SET first = d.first, second = d.second, admitted = d.admitted, unused_from = d.unused_from
  FROM verdict AS v, decided AS d WHERE v.fits AND d.cost > 0 AND {ofDecided})
SELECT d.granted, d.now, d.first, d.second, {leavesFirst}, d.can_be_limit FROM decided AS d ORDER BY d.number)";

constexpr const char* peekText = R"(WITH {asked}
SELECT g.granted, a.now, s.first, s.second, {leavesFirst}, k.can_be_limit
FROM asked AS a LEFT JOIN {rates} AS r ON {ofCharge}, {old} ORDER BY a.number)";

constexpr const char* refundText = R"(WITH {asked},
decided AS MATERIALIZED (SELECT a.family, a.rate_key, t.family IS NOT NULL AS is_given, k.can_be_limit, s.*
  FROM asked AS a JOIN {rates} AS r ON {ofCharge}, {old}),
changed AS (UPDATE {rates} AS r SET first = d.first, second = d.second, admitted = d.admitted, unused_from = d.unused_from
  FROM decided AS d WHERE d.is_given AND {ofDecided})
SELECT is_given, can_be_limit FROM decided)";

constexpr const char* resetText =
    "DELETE FROM {rates} WHERE family = $2::smallint AND rate_key = $3::bytea AND {boundsWait}";

// About sixteen pages are looked at, of so many as there are: the planner's own number of them may be old.
constexpr const char* clearUnusedRatesText =
    R"(DELETE FROM {rates} WHERE ctid = ANY (ARRAY(
  SELECT k.ctid FROM {rates} AS k TABLESAMPLE SYSTEM
    ((SELECT least(100, 1600.0 * 8192 / greatest(pg_relation_size('{rates}'), 1))))
  WHERE k.unused_from + 3600000000 <= {now} LIMIT 200 FOR UPDATE SKIP LOCKED)))";

/// A row's columns, as they are written.
struct Columns {
  const char* first;
  const char* second;
  const char* admitted;
  const char* unusedFrom;
};
constexpr Columns ofNoRow{"0::bigint", "0::bigint", "NULL::bigint[]", "0::bigint"};
constexpr Columns ofRow{"r.first", "r.second", "r.admitted", "r.unused_from"};
constexpr Columns ofRowOrNone{"coalesce(r.first, 0)", "coalesce(r.second, 0)", "r.admitted",
                              "coalesce(r.unused_from, 0)"};

std::string withColumns(const Columns& columns, const std::string& text) {
  return filled(text, {{"canBeLimit", canBeLimit},
                       {"first", columns.first},
                       {"second", columns.second},
                       {"admitted", columns.admitted},
                       {"unused_from", columns.unusedFrom}});
}

std::string decision(const Columns& columns, const Change& change, const std::string& granted) {
  return withColumns(columns, filled(std::string(judged) + ",\n  " + changed, {{"changes", change.changes},
                                                                               {"total", change.total},
                                                                               {"log", change.log},
                                                                               {"granted", granted}}));
}

std::string matching(const std::string& one, const std::string& other) {
  return filled(isSameKey, {{"one", one}, {"other", other}});
}

// Of a sliding window, whose room is its limit.
std::string leavesFirst(const std::string& row, const std::string& charge) {
  return filled("{row}.admitted[(cardinality({row}.admitted) + {charge}.cost - {charge}.room)::int]",
                {{"row", row}, {"charge", charge}});
}

}  // namespace

std::string ratesSchemaOf(const std::string& schema) {
  std::string text = ratesSchema;
  constexpr std::string_view written = "\"public\"";
  return text.replace(text.find(written), written.size(), "\"" + schema + "\"");
}

RateTexts::RateTexts(const std::string& schema) {
  const auto text = [&](const char* pattern, const std::string& leaves = "", const std::string& old = "",
                        const char* begins = boundsWait) {
    return filled(pattern, {{"asked", askedText},
                            {"begins", begins},
                            {"new", decision(ofNoRow, charging, "g.granted")},
                            {"old", old},
                            {"judged", withColumns(ofRow, judged)},
                            {"canBeLimit", withColumns(ofRow, canBeLimit)},
                            {"leavesFirst", leaves},
                            {"ofCharge", matching("r", "a")},
                            {"ofDecided", matching("r", "d")},
                            {"boundsWait", boundsWait},
                            {"now", microsecondsNow},
                            {"rates", "\"" + schema + "\".\"lockkeeper_rates\""}});
  };
  charge = text(chargeText, leavesFirst("r", "a"), decision(ofRow, charging, "g.granted"));
  boundStatement = boundStatementText;
  lockRows = text(lockRowsText);
  chargeAll = text(chargeAllText, leavesFirst("d", "d"),
                   decision(ofRow, charging, "CASE WHEN v.fits THEN g.granted ELSE 0 END"), endsBound);
  peek = text(peekText, leavesFirst("s", "a"), decision(ofRowOrNone, charging, "0"));
  refund = text(refundText, "", decision(ofRow, refunding, ""), endsBound);
  reset = text(resetText);
  clearUnused = text(clearUnusedRatesText);
}

}  // namespace lockkeeper::postgres
