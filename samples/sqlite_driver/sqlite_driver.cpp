#include "sqlite_driver.h"

#include <lockkeeper/base/fork_guard.h>
#include <lockkeeper/driver/inspection.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <variant>
#include <vector>

using namespace lockkeeper;

namespace {

using Value = std::variant<std::int64_t, std::string_view>;
using Row = std::vector<std::string>;

// Runs one statement, and returns the first row of its answer.
std::optional<Row> ask(sqlite3* file, const std::string& sql, std::initializer_list<Value> values) {
  const auto check = [&](int code) {
    if (code == SQLITE_OK || code == SQLITE_DONE) return;
    const std::string message = std::string("SQLite: ") + sqlite3_errstr(code);
    if (code == SQLITE_BUSY) throw StoreUnavailable(message);  // before the statement has changed anything
    throw OutcomeUnknown(message);
  };
  sqlite3_stmt* prepared = nullptr;
  check(sqlite3_prepare_v2(file, sql.c_str(), -1, &prepared, nullptr));
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, sqlite3_finalize);
  for (int place = 1; const Value& value : values) {
    if (const auto* const number = std::get_if<std::int64_t>(&value)) {
      sqlite3_bind_int64(prepared, place++, *number);
    } else {
      const auto bytes = std::get<std::string_view>(value);
      sqlite3_bind_blob64(prepared, place++, bytes.data(), bytes.size(), SQLITE_STATIC);
    }
  }
  std::optional<Row> first;
  int code = sqlite3_step(prepared);
  for (; code == SQLITE_ROW; code = sqlite3_step(prepared)) {
    Row row;
    for (int column = 0; column < sqlite3_column_count(prepared); ++column) {
      const auto* const text = static_cast<const char*>(sqlite3_column_blob(prepared, column));
      row.emplace_back(text, text + sqlite3_column_bytes(prepared, column));
    }
    if (!first) first = std::move(row);
  }
  check(code);
  return first;
}

std::int64_t sinceBoot(Instant time) { return time.time_since_epoch().count(); }

class SqliteDriver final : public LockDriver, public Breakable {
 public:
  SqliteDriver(const std::string& path, std::shared_ptr<Clock> clock)
      : path_(path), clock_(std::move(clock)) {
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_;
    sqlite3* opened = nullptr;
    const int code = sqlite3_open(path.c_str(), &opened);
    file_.reset(opened);
    if (code != SQLITE_OK) throw ConfigError("cannot open " + path + ": " + sqlite3_errstr(code));
  }
  ~SqliteDriver() override {
    if (forkGuard_.inherited()) static_cast<void>(file_.release());  // it is the parent's
  }

  AcquireResult acquire(const AcquireRequest& request) override {
    const Claim& claim = request.claim;
    const auto held = use(request.deadline);
    const Instant asked = clock_->now();
    const auto granted = run(
        "INSERT INTO locks (key, token, owner, ends, boot, fence) VALUES (?1, ?2, ?3, ?4, ?5, 1)"
        " ON CONFLICT (key) DO UPDATE"
        " SET fence = fence + (token IS NOT ?2), token = ?2, owner = ?3, ends = ?4, boot = ?5"
        " WHERE token IS NULL OR token = ?2 OR ends <= ?6 OR boot <> ?5"
        " RETURNING fence",
        {claim.key, claim.token.hex(), claim.owner, sinceBoot(asked + request.ttl), boot_, sinceBoot(asked)});
    if (!granted) return Busy{};
    return Granted{.leasedFrom = asked, .leasedFor = request.ttl, .fence = std::stoull(granted->at(0))};
  }

  void renew(std::span<Renewal> renewals, Instant deadline) override {
    for (Renewal& each : renewals) {
      try {
        const auto held = use(deadline);
        each.leasedFrom = clock_->now();
        each.leasedFor = each.ttl;
        const bool renewed = change("ends = ?5", "token = ?4", each.claim.key, each.claim.token.hex(),
                                    sinceBoot(each.leasedFrom + each.ttl));
        each.outcome = renewed ? RenewOutcome::renewed : RenewOutcome::notOwner;
      } catch (const Error& error) {
        const bool isCertain = error.code() == ErrorCode::storeUnavailable;
        each.outcome = isCertain ? RenewOutcome::unavailable : RenewOutcome::unknown;
        each.cause = error.what();
      }
    }
  }

  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    const auto held = use(deadline);
    const bool released = change("token = NULL", "token = ?4", claim.key, claim.token.hex());
    return released ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
  }

  std::optional<Holder> holder(std::string_view key, Instant deadline) override {
    const auto held = use(deadline);
    const auto row =
        run("SELECT owner, ends - ?2, fence FROM locks"
            " WHERE key = ?1 AND ends > ?2 AND boot = ?3 AND token IS NOT NULL",
            {key, sinceBoot(clock_->now()), boot_});
    if (!row) return std::nullopt;
    const std::chrono::nanoseconds left{std::stoll(row->at(1))};
    return Holder{.owner = row->at(0),
                  .remaining = std::chrono::ceil<std::chrono::milliseconds>(left),
                  .fence = std::stoull(row->at(2))};
  }

  Promises promises() const override {
    return {FencePromise::whileStoreKeepsWrites,
            "locks end when the machine restarts; a power failure may take the last fences back"};
  }
  std::string name() const override { return "sqlite:" + path_; }

  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Breakable>(*this, type);
  }

  bool breakLock(std::string_view key, Instant deadline, const Holder* shown) override {
    if (shown != nullptr && !shown->fence) return false;  // nothing tells it apart from a later holder
    const auto held = use(deadline);
    const auto fence = static_cast<std::int64_t>(shown != nullptr ? *shown->fence : 0);
    return change("token = NULL", "?4 IN (0, fence)", key, fence);
  }

 private:
  // The file, for one call: threads take turns, and processes wait for each other in SQLite.
  std::unique_lock<std::timed_mutex> use(Instant deadline) {
    forkGuard_.check();
    const auto left = [&] {
      const auto length = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_->now());
      return std::clamp<std::chrono::milliseconds>(length, {}, std::chrono::hours{24});
    };
    std::unique_lock held(mutex_, left());
    if (!held) throw StoreUnavailable("other threads use " + path_);
    sqlite3_busy_timeout(file_.get(), static_cast<int>(left().count()));
    if (!ready_) {
      run("PRAGMA journal_mode = WAL");
      run("PRAGMA synchronous = NORMAL");
      run("CREATE TABLE IF NOT EXISTS locks (key PRIMARY KEY, token, owner, ends, boot, fence)");
      ready_ = true;
    }
    return held;
  }

  std::optional<Row> run(const std::string& sql, std::initializer_list<Value> values = {}) {
    return ask(file_.get(), sql, values);
  }

  // Changes the row of a key that is held; false when there is none, or not `which`.
  bool change(const std::string& set, const std::string& which, std::string_view key, Value fourth,
              Value fifth = 0) {
    const std::string sql = "UPDATE locks SET " + set +
                            " WHERE key = ?1 AND ends > ?2 AND boot = ?3 AND token IS NOT NULL AND " + which +
                            " RETURNING 1";
    return run(sql, {key, sinceBoot(clock_->now()), boot_, fourth, fifth}).has_value();
  }

  const std::string path_;
  const std::shared_ptr<Clock> clock_;
  const ForkGuard forkGuard_;
  std::string boot_;  // of the machine, whose boot clock starts anew with the next one
  std::timed_mutex mutex_;
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> file_{nullptr, sqlite3_close};
  bool ready_ = false;
};

}  // namespace

std::shared_ptr<LockDriver> sqliteDriver(const std::string& path, std::shared_ptr<Clock> clock) {
  return std::make_shared<SqliteDriver>(path, std::move(clock));
}
