#include "sqlite.h"

#include <Poco/Data/SQLite/Connector.h>
#include <Poco/Data/SQLite/SQLiteException.h>

#include <mutex>

#include "lockkeeper/error.h"

namespace lockkeeper::inventory {

namespace sqlite = Poco::Data::SQLite;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;
using sql::SqlFault;

std::unique_ptr<sql::Connection> openSqlite(const std::string& file, std::chrono::seconds lockWait) {
  static std::once_flag registered;
  std::call_once(registered, [] { sqlite::Connector::registerConnector(); });
  Poco::Data::Session session("SQLite", file, static_cast<std::size_t>(lockWait.count()));
  session << "PRAGMA busy_timeout = " + std::to_string(std::chrono::milliseconds(lockWait).count()), now;
  std::string mode;
  session << "PRAGMA journal_mode = WAL", into(mode), now;
  return std::make_unique<sql::Connection>(std::move(session));
}

SqlFault classify(const Poco::Exception& exception) {
  if (dynamic_cast<const sqlite::DBLockedException*>(&exception) != nullptr ||
      dynamic_cast<const sqlite::TableLockedException*>(&exception) != nullptr) {
    return SqlFault::contention;
  }
  if (dynamic_cast<const sqlite::ConstraintViolationException*>(&exception) != nullptr) {
    const bool unique = exception.message().find("UNIQUE constraint") != std::string::npos;
    return unique ? SqlFault::duplicateKey : SqlFault::refused;
  }
  return sql::classify(exception);
}

void throwAsError(const Poco::Exception& exception, const std::string& database) {
  if (classify(exception) == SqlFault::contention) {
    throw StoreUnavailable(database + ": " + sql::reason(exception));
  }
  // No class of its own, and the same one as an unreachable server.
  if (exception.message().find("Can't open DB file") != std::string::npos) {
    throw ConfigError(database + ": " + sql::reason(exception));
  }
  sql::throwAsError(exception, database);
}

}  // namespace lockkeeper::inventory
