#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/postgres/value_store.h"
#include "schema.h"
#include "schema_tables.h"
#include "session/server_options.h"
#include "session/sessions.h"
#include "session/texts.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t writesBetweenClearings = 128;
constexpr milliseconds longestTidying{300};

// The clock goes on while a statement waits for the row, so the end is computed when it has it.
constexpr const char* valueEnd = "clock_timestamp() + $3::bigint * interval '1 millisecond'";

// A late statement of a pooler's session must not overtake what was written since. See Session::latest().
std::string isInTime(const std::string& latest) {
  return "(" + latest + "::bigint IS NULL OR " + microsecondsNow + " < " + latest + "::bigint)";
}

/// In all but `clear`, $1 is the key. The last value of put, add and erase is until when they may write.
struct ValueTexts {
  explicit ValueTexts(const std::string& values)
      : get("SELECT encode(v.value, 'hex') FROM " + values +
            " AS v WHERE v.value_key = $1::bytea AND v.expires_at > clock_timestamp()"),
        put("INSERT INTO " + values + " AS v (value_key, value, expires_at) SELECT $1::bytea, $2::bytea, " +
            valueEnd + " WHERE " + isInTime("$4") +
            " ON CONFLICT (value_key) DO UPDATE SET value = EXCLUDED.value, expires_at = " + valueEnd +
            " WHERE " + isInTime("$4")),
        add(put + " AND v.expires_at <= clock_timestamp()"),
        erase("DELETE FROM " + values + " AS v WHERE v.value_key = $1::bytea AND " + isInTime("$2") +
              " RETURNING v.expires_at > clock_timestamp()"),
        clear("DELETE FROM " + values + " WHERE value_key IN (SELECT v.value_key FROM " + values +
              " AS v WHERE v.expires_at <= now() ORDER BY v.expires_at LIMIT 256 FOR UPDATE SKIP LOCKED)") {}

  std::string get;
  std::string put;  ///< $2 the value, $3 for how many ms.
  std::string add;
  std::string erase;
  std::string clear;  ///< By the time of its transaction, by which an index can be searched.
};

}  // namespace

class PostgresValues::Impl {
 public:
  Impl(const ServerOptions& options, const std::string& table, const Environment& environment)
      : texts(quotedTable(options.schema, table, "_values")),
        sessions_(options, namedTables(valuesSchema, "values.sql", options.schema, table), environment),
        // At random, so that processes which write little clear, too.
        writes_(environment.random->upTo(writesBetweenClearings - 1)) {}

  Result get(std::string_view key, Instant deadline) {
    forkGuard.check();
    return sessions_.ask({texts.get, {Value::bytes(key)}}, deadline);
  }

  Result change(const std::string& text, std::vector<Value> values, Instant deadline) {
    forkGuard.check();
    return sessions_.with(deadline, [&](Session& session) {
      values.push_back(session.latest(deadline));
      return session.ask({text, std::move(values)}, deadline);
    });
  }

  /// Returns whether it was written.
  bool write(const std::string& text, std::string_view key, std::string_view value, milliseconds ttl,
             Instant deadline) {
    checkValue(key, value, ttl);
    const Result result =
        change(text, {Value::bytes(key), Value::bytes(value), std::int64_t{ttl.count()}}, deadline);
    clearNowAndThen(deadline);
    return result.changed() != 0;
  }

  const ForkGuard forkGuard;
  const ValueTexts texts;

 private:
  void clearNowAndThen(Instant deadline) noexcept {
    if (++writes_ % writesBetweenClearings != 0) return;
    try {
      sessions_.ask({texts.clear}, std::min(deadline, sessions_.clock().now() + longestTidying));
    } catch (const std::exception&) {
      // The next one is soon enough.
    }
  }

  Sessions sessions_;
  std::atomic<std::uint64_t> writes_;
};

PostgresValues::PostgresValues(const StoreUri& uri, const Environment& environment)
    : impl_(std::make_unique<Impl>(ServerOptions::fromUri(uri, {"table"}), tableOf(uri), environment)) {}

PostgresValues::~PostgresValues() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

std::optional<std::string> PostgresValues::get(std::string_view key, Instant deadline) {
  checkKey(key);
  const Result result = impl_->get(key, deadline);
  return result.rows() == 0 ? std::nullopt : std::optional(result.bytes(0, 0));
}

void PostgresValues::put(std::string_view key, std::string_view value, milliseconds ttl, Instant deadline) {
  impl_->write(impl_->texts.put, key, value, ttl, deadline);
}

bool PostgresValues::add(std::string_view key, std::string_view value, milliseconds ttl, Instant deadline) {
  return impl_->write(impl_->texts.add, key, value, ttl, deadline);
}

bool PostgresValues::erase(std::string_view key, Instant deadline) {
  checkKey(key);
  const Result result = impl_->change(impl_->texts.erase, {Value::bytes(key)}, deadline);
  return result.rows() != 0 && result.isTrue(0, 0);
}

}  // namespace lockkeeper::postgres
