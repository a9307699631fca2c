#include "records/shared_records.h"

#include <cstddef>
#include <cstdint>

#include "arrays.h"
#include "schema.h"
#include "schema_tables.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

// A record that comes back after it was removed has another stamp than it had. Each write counts it up.
constexpr const char* firstStamp = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
constexpr const char* isThere = "r.migration = $1::bytea AND r.expires_at > clock_timestamp()";

std::string lockText(const std::string& function, const std::string& records) {
  return "SELECT " + function + "(hashtextextended('" + records + " ' || encode($1::bytea, 'hex'), 0))";
}

std::string shownColumns(const std::string& body) {
  return "SELECT encode(r.name, 'hex'), encode(" + body +
         ", 'hex'), greatest(0, extract(epoch FROM clock_timestamp() - r.written_at) * 1000)::bigint, "
         "r.stamp";
}

std::string insertInto(const std::string& records) {
  return "INSERT INTO " + records + " AS r (migration, name, body, stamp, written_at, expires_at) ";
}

std::string orUpdate(const std::string& end) {
  return " ON CONFLICT (migration, name) DO UPDATE SET body = EXCLUDED.body, stamp = r.stamp + 1, "
         "written_at = clock_timestamp(), expires_at = " +
         end;
}

std::vector<SharedRecord> recordsIn(const Result& result) {
  std::vector<SharedRecord> all;
  for (std::size_t row = 0; row < result.rows(); ++row)
    all.push_back({.name = result.bytes(row, 0),
                   .text = result.bytes(row, 1),
                   .age = milliseconds(result.number(row, 2)),
                   .stamp = static_cast<std::uint64_t>(result.number(row, 3))});
  return all;
}

constexpr auto addName = [](Array& array, const auto& each) { array.addBytes(each.name); };

ServerOptions withOneSession(ServerOptions options) {
  options.connections = 1;
  return options;
}

}  // namespace

PostgresRecords::Texts::Texts(const std::string& records)
    : share(lockText("pg_advisory_xact_lock_shared", records)),
      exclude(lockText("pg_advisory_xact_lock", records)) {
  const std::string end = "coalesce(clock_timestamp() + $4::bigint * interval '1 millisecond', 'infinity')";
  write = insertInto(records) + "VALUES ($1::bytea, $2::bytea, $3::bytea, " + firstStamp +
          ", clock_timestamp(), " + end + ")" + orUpdate(end);
  wanted = shownColumns("CASE WHEN r.stamp = w.known THEN '' ELSE r.body END") +
           " FROM unnest($2::bytea[], $3::bigint[]) AS w (name, known) JOIN " + records +
           " AS r ON r.name = w.name WHERE " + isThere;
  // Those who remove the same rows do not wait for each other.
  clear = "DELETE FROM " + records + " WHERE migration = $1::bytea AND name IN (SELECT r.name FROM " +
          records +
          " AS r WHERE r.migration = $1::bytea AND r.expires_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)";
  read = shownColumns("r.body") + " FROM " + records + " AS r WHERE " + isThere;
  replace =
      "WITH present AS (SELECT r.name, r.body, r.stamp FROM " + records + " AS r WHERE " + isThere +
      "), known AS (SELECT * FROM unnest($5::bytea[], $6::bigint[]) AS k (name, stamp)) " +
      insertInto(records) + "SELECT $1::bytea, $2::bytea, $4::bytea, " + firstStamp +
      ", clock_timestamp(), 'infinity' WHERE (SELECT p.body FROM present AS p WHERE p.name = $2::bytea) "
      "IS NOT DISTINCT FROM $3::bytea AND (cardinality($5::bytea[]) = 0 OR NOT EXISTS (SELECT FROM "
      "present AS p WHERE p.name <> $2::bytea AND NOT EXISTS (SELECT FROM known AS k WHERE k.name = "
      "p.name AND k.stamp IN (0, p.stamp))))" +
      orUpdate("'infinity'");
}

PostgresRecords::PostgresRecords(const ServerOptions& options, const std::string& table,
                                 const Environment& environment)
    : texts_(quotedTable(options.schema, table, "_records")),
      sessions_(withOneSession(options), namedTables(recordsSchema, "records.sql", options.schema, table),
                environment) {}

std::vector<SharedRecord> PostgresRecords::write(std::string_view table, std::string_view name,
                                                 std::string_view text, std::optional<milliseconds> keep,
                                                 std::span<const WantedRecord> wanted, Instant deadline) {
  forkGuard_.check();
  const Value itsTable = Value::bytes(table);
  const Value length = keep ? Value(std::int64_t{keep->count()}) : Value(nullptr);
  const Value stamps = arrayOf(
      wanted, [](Array& array, const auto& each) { array.add(static_cast<std::int64_t>(each.known)); });
  const std::vector<Statement> statements{
      {texts_.share, {itsTable}},
      {texts_.write, {itsTable, Value::bytes(name), Value::bytes(text), length}},
      {texts_.wanted, {itsTable, arrayOf(wanted, addName), stamps}}};
  return recordsIn(sessions_.transact(statements, deadline).back());
}

std::vector<SharedRecord> PostgresRecords::read(std::string_view table, Instant deadline) {
  forkGuard_.check();
  const Value itsTable = Value::bytes(table);
  const std::vector<Statement> statements{{texts_.clear, {itsTable}}, {texts_.read, {itsTable}}};
  return recordsIn(sessions_.transact(statements, deadline).back());
}

bool PostgresRecords::replace(std::string_view table, std::string_view name,
                              const std::optional<std::string>& expected, std::string_view text,
                              std::span<const KnownRecord> known, Instant deadline) {
  forkGuard_.check();
  const Value itsTable = Value::bytes(table);
  const Value present = expected ? Value::bytes(*expected) : Value(nullptr);
  const Value stamps = arrayOf(
      known, [](Array& array, const auto& each) { array.add(static_cast<std::int64_t>(each.stamp)); });
  const std::vector<Statement> statements{
      {texts_.exclude, {itsTable}},
      {texts_.replace,
       {itsTable, Value::bytes(name), present, Value::bytes(text), arrayOf(known, addName), stamps}}};
  return sessions_.transact(statements, deadline).back().changed() != 0;
}

}  // namespace lockkeeper::postgres
