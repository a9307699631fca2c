#pragma once

#include <Poco/Exception.h>

#include <string>

namespace lockkeeper::sql {

/// What an exception of Poco::Data means to us.
enum class SqlFault {
  duplicateKey,    ///< A row of this key is there already.
  contention,      ///< Deadlock, lock wait too long, database busy: try again in a new transaction.
  connectionLost,  ///< The session is gone, and what it had not committed with it.
  refused,         ///< Everything else: the database answers, but will not do it.
};

/// For exceptions of MySQL and MariaDB sessions.
SqlFault classify(const Poco::Exception& exception);

/// For an error number of the server or the client library.
SqlFault classify(long errorNumber);

/// The server's or the client library's number of the error; 0 when there is none. Poco keeps it in the text
/// only.
long errorNumber(const Poco::Exception& exception);

/// The database's own words on one line, without Poco's decoration and the statement. They hold no secret.
std::string reason(const Poco::Exception& exception);

/// Throws `exception` as the error of lockkeeper that it stands for, with `database` (a display text) in its
/// message.
[[noreturn]] void throwAsError(const Poco::Exception& exception, const std::string& database);

}  // namespace lockkeeper::sql
