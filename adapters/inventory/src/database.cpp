#include "database.h"

#include "lockkeeper/error.h"
#include "lockkeeper/internal/backoff.h"
#include "sqlite.h"

namespace lockkeeper::inventory {
namespace {

using sql::SqlFault;

constexpr int maxAttempts = 4;
constexpr std::chrono::milliseconds firstPause{2};
constexpr std::chrono::milliseconds longestPause{8};

sql::PoolOptions poolOptions(const DatabaseUri& uri, std::size_t sessions,
                             std::chrono::seconds operationTimeout, std::shared_ptr<Clock> clock) {
  sql::PoolOptions options{.open = {},
                           .size = sessions,
                           .timeout = operationTimeout,
                           .display = uri.display(),
                           .clock = std::move(clock)};
  if (const auto* file = std::get_if<SqliteFile>(&uri.place)) {
    options.open = [path = file->path, operationTimeout] { return openSqlite(path, operationTimeout); };
    // SQLite lets one writer in at a time and makes the others poll: better they queue for its only session.
    options.size = 1;
    return options;
  }
  options.open = [server = std::get<sql::ServerAddress>(uri.place), operationTimeout] {
    return sql::Connection::open(server, operationTimeout);
  };
  options.setUp =
      "SET SESSION autocommit = 1, innodb_lock_wait_timeout = " + std::to_string(operationTimeout.count());
  return options;
}

}  // namespace

Database::Database(const DatabaseUri& uri, std::size_t sessions, std::chrono::seconds operationTimeout,
                   Environment environment)
    : environment_(std::move(environment)),
      dialect_(uri.dialect()),
      pool_(poolOptions(uri, sessions, operationTimeout, environment_.clock)) {}

Transaction Database::begin() {
  return Transaction(pool_, dialect_ == Dialect::sqlite ? "BEGIN IMMEDIATE" : "START TRANSACTION");
}

bool Database::isContention(const std::exception& failure) {
  const auto* known = dynamic_cast<const Poco::Exception*>(&failure);
  return known != nullptr && classify(*known) == SqlFault::contention;
}

bool Database::attempt(const std::function<void()>& transaction) {
  Backoff backoff(firstPause, longestPause);
  for (int attempt = 1;; ++attempt) {
    try {
      transaction();
      return true;
    } catch (const Poco::Exception& exception) {
      const SqlFault fault = classify(exception);
      const bool last = attempt == maxAttempts;
      if (fault == SqlFault::contention && last) return false;
      if (fault == SqlFault::connectionLost) pool_.closeIdle();
      const bool again = fault == SqlFault::contention || fault == SqlFault::connectionLost;
      if (!again || last) throwAsError(exception, pool_.display());
    }
    Clock& clock = *environment_.clock;
    pauseUntil(clock, saturatingAdd(clock.now(), backoff.next(*environment_.random)));
  }
}

void Database::run(const std::function<void()>& transaction) {
  if (!attempt(transaction)) throw StoreUnavailable(pool_.display() + ": stayed locked by others");
}

}  // namespace lockkeeper::inventory
