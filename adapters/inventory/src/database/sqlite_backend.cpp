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

/// Whether the exception is one of these.
template <class... Kinds>
bool isOneOf(const Poco::Exception& exception) {
  return ((dynamic_cast<const Kinds*>(&exception) != nullptr) || ...);
}

[[noreturn]] void throwAsError(const Poco::Exception& exception, const std::string& display) {
  std::string message = display + ": " + exception.message();
  std::ranges::replace_if(
      message, [](unsigned char c) { return c < ' '; }, ' ');
  if (isOneOf<sqlite::DBLockedException, sqlite::TableLockedException>(exception)) throw Locked(message);
  // What may pass by itself: a disk that is full or does not answer, and the like. It has rolled back.
  if (isOneOf<sqlite::DatabaseFullException, sqlite::IOErrorException, sqlite::NoMemoryException,
              sqlite::InterruptException, sqlite::ExecutionAbortedException, sqlite::LockProtocolException>(
          exception)) {
    throw StoreUnavailable(message);
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

/// With the right that the session was opened for.
void beginOn(Poco::Data::Session& sql, const char* statement) {
  if constexpr (POCO_VERSION >= beginsImmediately) {
    sql.begin();
  } else {
    sql << std::string(statement), now;
  }
}

void endOn(Poco::Data::Session& sql, bool commit) {
  if constexpr (POCO_VERSION >= beginsImmediately) {
    commit ? sql.commit() : sql.rollback();
  } else {
    sql << std::string(commit ? "COMMIT" : "ROLLBACK"), now;
  }
}

Poco::Data::Session open(const std::string& file, std::chrono::seconds lockWait, bool toWrite) {
  static std::once_flag registered;
  std::call_once(registered, [] { sqlite::Connector::registerConnector(); });
  Poco::Data::Session sql("SQLite", file, static_cast<std::size_t>(lockWait.count()));
  sql << "PRAGMA busy_timeout = " + std::to_string(std::chrono::milliseconds(lockWait).count()), now;
  std::string mode;
  sql << "PRAGMA journal_mode = WAL", into(mode), now;
#if POCO_VERSION >= 0x010D0000
  sql.setProperty(sqlite::Utility::TRANSACTION_TYPE_PROPERTY_KEY,
                  toWrite ? sqlite::TransactionType::IMMEDIATE : sqlite::TransactionType::DEFERRED);
#else
  static_cast<void>(toWrite);
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
  class Statements;
  class Turn;
  class Snapshot;

  const std::string file_;
  const std::string display_;
  const StockOptions options_;

  std::mutex mutex_;
  std::condition_variable freed_;
  bool inUse_ = false;
  std::optional<Poco::Data::Session> sql_;  // Of whoever has it in use.
};

/// Statements on whichever session.
class SqliteBackend::Statements : public Transaction::Session {
 public:
  explicit Statements(SqliteBackend& backend) : backend_(backend) {}

  std::optional<mysql::SqlRow> select(const std::string& statement, const mysql::SqlRow& values) override {
    return translated(backend_.display_, [&] { return mysql::selectRow(sql(), statement, values); });
  }
  std::vector<mysql::SqlRow> selectAll(const std::string& statement, const mysql::SqlRow& values) override {
    return translated(backend_.display_, [&] { return mysql::selectRows(sql(), statement, values); });
  }
  std::size_t execute(const std::string& statement, const mysql::SqlRow& values) override {
    return translated(backend_.display_, [&] { return mysql::executeOn(sql(), statement, values); });
  }
  std::size_t execute(std::span<const mysql::SqlStatement> statements) override {
    std::size_t changed = 0;
    for (const mysql::SqlStatement& each : statements) changed += execute(each.text, each.values);
    return changed;
  }
  void commit() override {
    try {
      endOn(sql(), true);
    } catch (const Poco::Exception& exception) {
      throw OutcomeUnknown(backend_.display_ + ": COMMIT failed: " + exception.message());
    }
  }
  std::string clock() const override {
    return std::to_string(backend_.options_.environment.clock->wallNow().time_since_epoch().count());
  }

 protected:
  virtual Poco::Data::Session& sql() = 0;

  SqliteBackend& backend_;
};

/// A moment's view, on a session of its own: readers and the writer do not wait for each other.
class SqliteBackend::Snapshot final : public Statements {
 public:
  explicit Snapshot(SqliteBackend& backend)
      : Statements(backend), sql_(translated(backend.display_, [&] {
          return inventory::open(backend.file_, backend.options_.operationTimeout, false);
        })) {
    translated(backend_.display_, [&] { beginOn(sql_, "BEGIN DEFERRED"); });
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() override {
    try {
      endOn(sql_, false);
    } catch (const std::exception&) {  // Closing it ends the transaction as well.
    }
  }

 private:
  Poco::Data::Session& sql() override { return sql_; }

  Poco::Data::Session sql_;
};

/// The use of the session that writes, in a transaction.
class SqliteBackend::Turn final : public Statements {
 public:
  Turn(SqliteBackend& backend, Instant latest) : Statements(backend) {
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
      if (!backend_.sql_)
        backend_.sql_ = inventory::open(backend_.file_, backend_.options_.operationTimeout, true);
      if (access == Access::write) beginOn(*backend_.sql_, "BEGIN IMMEDIATE");
    });
    open_ = access == Access::write;
  }

  void commit() override {
    Statements::commit();
    open_ = false;
  }

 private:
  Poco::Data::Session& sql() override { return *backend_.sql_; }

  bool open_ = false;
};

Transaction SqliteBackend::begin(Access access, Instant latest) {
  if (access == Access::snapshot) return Transaction(std::make_unique<Snapshot>(*this));
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
