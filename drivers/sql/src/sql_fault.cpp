#include "lockkeeper/sql/sql_fault.h"

#include <Poco/Data/DataException.h>

#include <algorithm>
#include <cstdlib>

#include "lockkeeper/error.h"

namespace lockkeeper::sql {

long errorNumber(const Poco::Exception& exception) {
  constexpr std::string_view mark = "errno]: ";
  const std::string& text = exception.message();
  // The last one in the text: what stands before it may quote a value that came from outside.
  const auto at = text.rfind(mark);
  return at == std::string::npos ? 0 : std::strtol(text.c_str() + at + mark.size(), nullptr, 10);
}

std::string reason(const Poco::Exception& exception) {
  std::string text = exception.message();
  constexpr std::string_view mark = "_error]: ";
  if (const auto at = text.find(mark); at != std::string::npos) text.erase(0, at + mark.size());
  if (const auto end = text.find("\t["); end != std::string::npos) {
    text.erase(end);
    text += " (error " + std::to_string(errorNumber(exception)) + ")";
  }
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

SqlFault classify(const Poco::Exception& exception) { return classify(errorNumber(exception)); }

SqlFault classify(long errorNumber) {
  switch (errorNumber) {
    case 1062:  // duplicate entry
      return SqlFault::duplicateKey;
    case 1020:  // record has changed since last read
    case 1205:  // lock wait timeout
    case 1213:  // deadlock
    case 1317:  // somebody sent KILL QUERY
    case 1969:  // MariaDB: the statement took longer than max_statement_time
    case 3024:  // MySQL: longer than max_execution_time
      return SqlFault::contention;
    case 1053:  // server shutdown in progress
    case 1927:  // connection was killed
    case 2006:  // server has gone away
    case 2013:  // lost connection during query
    case 2055:  // lost connection at …
    case 3169:  // the session was killed
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
    for (const char* mark : {"Access denied", "Unknown database"}) {
      if (message.find(mark) != std::string::npos) throw ConfigError(message);
    }
    throw StoreUnavailable(message);
  }
  if (classify(exception) == SqlFault::refused) throw ConfigError(message);
  throw StoreUnavailable(message);
}

}  // namespace lockkeeper::sql
