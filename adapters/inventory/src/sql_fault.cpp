#include "sql_fault.h"

#include <Poco/Data/DataException.h>
#include <Poco/Data/SQLite/SQLiteException.h>

#include <algorithm>
#include <cstdlib>

#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

namespace sqlite = Poco::Data::SQLite;

// The last one in the text: what stands before it may quote a value that came from outside.
long mysqlErrorNumber(const std::string& text) {
  constexpr std::string_view mark = "errno]: ";
  const auto at = text.rfind(mark);
  return at == std::string::npos ? 0 : std::strtol(text.c_str() + at + mark.size(), nullptr, 10);
}

// The database's own words on one line, without Poco's decoration and the statement.
std::string reason(const Poco::Exception& exception) {
  std::string text = exception.message();
  constexpr std::string_view mark = "_error]: ";
  if (const auto at = text.find(mark); at != std::string::npos) text.erase(0, at + mark.size());
  if (const auto end = text.find("\t["); end != std::string::npos) {
    const long number = mysqlErrorNumber(text);
    text.erase(end);
    text += " (error " + std::to_string(number) + ")";
  }
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

}  // namespace

SqlFault classify(const Poco::Exception& exception) {
  if (dynamic_cast<const sqlite::DBLockedException*>(&exception) != nullptr ||
      dynamic_cast<const sqlite::TableLockedException*>(&exception) != nullptr) {
    return SqlFault::contention;
  }
  if (dynamic_cast<const sqlite::ConstraintViolationException*>(&exception) != nullptr) {
    const bool unique = exception.message().find("UNIQUE constraint") != std::string::npos;
    return unique ? SqlFault::duplicateKey : SqlFault::refused;
  }
  switch (mysqlErrorNumber(exception.message())) {
    case 1062:  // duplicate entry
      return SqlFault::duplicateKey;
    case 1020:  // record has changed since last read
    case 1205:  // lock wait timeout
    case 1213:  // deadlock
    case 1317:  // somebody sent KILL QUERY
      return SqlFault::contention;
    case 1053:  // server shutdown in progress
    case 1927:  // connection was killed
    case 2006:  // server has gone away
    case 2013:  // lost connection during query
    case 2055:  // lost connection at …
    case 4031:  // disconnected by the server because of inactivity
      return SqlFault::connectionLost;
    default:
      return SqlFault::refused;
  }
}

void throwAsError(const Poco::Exception& exception, const std::string& database) {
  const std::string message = database + ": " + reason(exception);
  if (dynamic_cast<const Poco::Data::ConnectionFailedException*>(&exception) != nullptr) {
    // No number at all here. What an administrator must mend is told by its text.
    for (const char* mark : {"Access denied", "Unknown database", "Can't open DB file"}) {
      if (message.find(mark) != std::string::npos) throw ConfigError(message);
    }
    throw StoreUnavailable(message);
  }
  if (classify(exception) == SqlFault::refused) throw ConfigError(message);
  throw StoreUnavailable(message);
}

}  // namespace lockkeeper::inventory
