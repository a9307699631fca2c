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

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t writesBetweenClearings = 128;
constexpr milliseconds longestTidying{300};

// The clock goes on while a statement waits for the row, so the end is computed when it has it.
constexpr const char* valueEnd = "clock_timestamp() + $3::bigint * interval '1 millisecond'";

/// In all but `clear`, $1 is the key.
struct ValueTexts {
  explicit ValueTexts(const std::string& values)
      : get("SELECT encode(v.value, 'hex') FROM " + values +
            " AS v WHERE v.value_key = $1::bytea AND v.expires_at > clock_timestamp()"),
        put("INSERT INTO " + values + " AS v (value_key, value, expires_at) VALUES ($1::bytea, $2::bytea, " +
            valueEnd +
            ") ON CONFLICT (value_key) DO UPDATE SET value = EXCLUDED.value, expires_at = " + valueEnd),
        add(put + " WHERE v.expires_at <= clock_timestamp()"),
        erase("DELETE FROM " + values +
              " AS v WHERE v.value_key = $1::bytea RETURNING v.expires_at > clock_timestamp()"),
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
        sessions_(options, namedTables(valuesSchema, "values.sql", options.schema, table), environment) {}

  Result ask(const std::string& text, std::vector<Value> values, Instant deadline) {
    forkGuard.check();
    return sessions_.ask({text, std::move(values)}, deadline);
  }

  /// Returns whether it was written.
  bool write(const std::string& text, std::string_view key, std::string_view value, milliseconds ttl,
             Instant deadline) {
    checkValue(key, value, ttl);
    const Result result =
        ask(text, {Value::bytes(key), Value::bytes(value), std::int64_t{ttl.count()}}, deadline);
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
  std::atomic<std::uint32_t> writes_ = 0;
};

PostgresValues::PostgresValues(const StoreUri& uri, const Environment& environment)
    : impl_(std::make_unique<Impl>(ServerOptions::fromUri(uri, {"table"}), tableOf(uri), environment)) {}

PostgresValues::~PostgresValues() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

std::optional<std::string> PostgresValues::get(std::string_view key, Instant deadline) {
  checkKey(key);
  const Result result = impl_->ask(impl_->texts.get, {Value::bytes(key)}, deadline);
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
  const Result result = impl_->ask(impl_->texts.erase, {Value::bytes(key)}, deadline);
  return result.rows() != 0 && result.isTrue(0, 0);
}

}  // namespace lockkeeper::postgres
