#include <Poco/Data/SQLite/Connector.h>
#include <Poco/Data/SQLite/SQLiteException.h>
#include <Poco/Data/SQLite/Utility.h>
#include <Poco/Data/Session.h>
#include <Poco/Version.h>

#include <algorithm>
#include <mutex>

#include "database/backend.h"
#include "lockkeeper/error.h"
#include "lockkeeper/mysql/poco_rows.h"

namespace lockkeeper::inventory {
namespace {

namespace sqlite = Poco::Data::SQLite;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

// From here on Poco begins a transaction by itself after a textual BEGIN; before, its own begin() cannot ask
// for the right to write.
constexpr int beginsImmediately = 0x010D0000;

/// Others stand in the way.
class Locked : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

[[noreturn]] void throwAsError(const Poco::Exception& exception, const std::string& display) {
  std::string message = display + ": " + exception.message();
  std::ranges::replace_if(
      message, [](unsigned char c) { return c < ' '; }, ' ');
  if (dynamic_cast<const sqlite::DBLockedException*>(&exception) != nullptr ||
      dynamic_cast<const sqlite::TableLockedException*>(&exception) != nullptr) {
    throw Locked(message);
  }
  throw ConfigError(message);
}

/// Runs `call`, and throws lockkeeper's errors for Poco's.
template <class Call>
auto translated(const std::string& display, Call&& call) {
  try {
    return call();
  } catch (const Poco::Exception& exception) {
    throwAsError(exception, display);
  }
}

void beginOn(Poco::Data::Session& sql) {
  if constexpr (POCO_VERSION >= beginsImmediately) {
    sql.begin();
  } else {
    sql << "BEGIN IMMEDIATE", now;
  }
}

void endOn(Poco::Data::Session& sql, bool commit) {
  if constexpr (POCO_VERSION >= beginsImmediately) {
    commit ? sql.commit() : sql.rollback();
  } else {
    sql << std::string(commit ? "COMMIT" : "ROLLBACK"), now;
  }
}

Poco::Data::Session open(const std::string& file, std::chrono::seconds lockWait) {
  static std::once_flag registered;
  std::call_once(registered, [] { sqlite::Connector::registerConnector(); });
  Poco::Data::Session sql("SQLite", file, static_cast<std::size_t>(lockWait.count()));
  sql << "PRAGMA busy_timeout = " + std::to_string(std::chrono::milliseconds(lockWait).count()), now;
  std::string mode;
  sql << "PRAGMA journal_mode = WAL", into(mode), now;
#if POCO_VERSION >= 0x010D0000
  sql.setProperty(sqlite::Utility::TRANSACTION_TYPE_PROPERTY_KEY, sqlite::TransactionType::IMMEDIATE);
#endif
  return sql;
}

/// SQLite lets one writer in at a time and makes the others poll: better they queue for its only session.
class SqliteBackend final : public Backend {
 public:
  SqliteBackend(std::string file, const StockOptions& options)
      : file_(std::move(file)), display_("sqlite:" + file_), options_(options) {}

  Dialect dialect() const override { return Dialect::sqlite; }
  const std::string& display() const override { return display_; }
  Transaction begin(Access access, Instant latest) override;
  Fault faultOf(const std::exception& failure) const override {
    return dynamic_cast<const Locked*>(&failure) != nullptr ? Fault::contention : Fault::final;
  }

 private:
  class Turn;

  const std::string file_;
  const std::string display_;
  const StockOptions options_;

  std::mutex mutex_;
  std::condition_variable freed_;
  bool inUse_ = false;
  std::optional<Poco::Data::Session> sql_;  // Of whoever has it in use.
};

/// The use of the session, in a transaction.
class SqliteBackend::Turn final : public Transaction::Session {
 public:
  Turn(SqliteBackend& backend, Instant latest) : backend_(backend) {
    Clock& clock = *backend_.options_.environment.clock;
    const Instant until = std::min(saturatingAdd(clock.now(), backend_.options_.operationTimeout), latest);
    std::unique_lock held(backend_.mutex_);
    while (backend_.inUse_) {
      if (clock.now() >= until) {
        throw StoreUnavailable(backend_.display_ + ": its session stayed in use");
      }
      clock.wait(held, backend_.freed_, until);
    }
    backend_.inUse_ = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() override {
    try {
      if (open_) endOn(*backend_.sql_, false);
    } catch (const std::exception&) {  // memory that it lacks, too
      backend_.sql_.reset();           // Closing it rolls back as well.
    }
    {
      const std::lock_guard held(backend_.mutex_);
      backend_.inUse_ = false;
    }
    backend_.freed_.notify_one();
  }

  void begin(Access access) {
    translated(backend_.display_, [&] {
      if (!backend_.sql_) backend_.sql_ = inventory::open(backend_.file_, backend_.options_.operationTimeout);
      if (access == Access::write) beginOn(*backend_.sql_);
    });
    open_ = access == Access::write;
  }

  std::optional<mysql::SqlRow> select(const std::string& statement, const mysql::SqlRow& values) override {
    return translated(backend_.display_, [&] { return mysql::selectRow(*backend_.sql_, statement, values); });
  }
  std::vector<mysql::SqlRow> selectAll(const std::string& statement, const mysql::SqlRow& values) override {
    return translated(backend_.display_,
                      [&] { return mysql::selectRows(*backend_.sql_, statement, values); });
  }
  std::size_t execute(const std::string& statement, const mysql::SqlRow& values) override {
    return translated(backend_.display_, [&] { return mysql::executeOn(*backend_.sql_, statement, values); });
  }
  std::size_t execute(std::span<const mysql::SqlStatement> statements) override {
    std::size_t changed = 0;
    for (const mysql::SqlStatement& each : statements) changed += execute(each.text, each.values);
    return changed;
  }
  void commit() override {
    try {
      endOn(*backend_.sql_, true);
      open_ = false;
    } catch (const Poco::Exception& exception) {
      throw OutcomeUnknown(backend_.display_ + ": COMMIT failed: " + exception.message());
    }
  }
  std::string clock() const override {
    return std::to_string(backend_.options_.environment.clock->wallNow().time_since_epoch().count());
  }

 private:
  SqliteBackend& backend_;
  bool open_ = false;
};

Transaction SqliteBackend::begin(Access access, Instant latest) {
  auto turn = std::make_unique<Turn>(*this, latest);
  turn->begin(access);
  return Transaction(std::move(turn));
}

}  // namespace

std::unique_ptr<Backend> makeSqliteBackend(std::string_view uri, const StockOptions& options) {
  const std::string_view path = uri.substr(uri.find(':') + 1);
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) {
    throw ConfigError("sqlite: needs the absolute path of a file (sqlite:/path/file.db), not " +
                      quoted(path));
  }
  return std::make_unique<SqliteBackend>(std::string(path), options);
}

}  // namespace lockkeeper::inventory
