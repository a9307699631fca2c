#pragma once

#include <Poco/Exception.h>

#include <string>

namespace lockkeeper::inventory {

/// What an exception of Poco::Data means to us. Poco keeps no error number: MySQL's stands in the text only.
enum class SqlFault {
  duplicateKey,    ///< A row of this key is there already.
  contention,      ///< Deadlock, lock wait too long, database busy: try again in a new transaction.
  connectionLost,  ///< The session is gone, and what it had not committed with it.
  refused,         ///< Everything else: the database answers, but will not do it.
};

SqlFault classify(const Poco::Exception& exception);

/// Throws `exception` as the error of lockkeeper that it stands for, with `database` (a display text) in its
/// message.
[[noreturn]] void throwAsError(const Poco::Exception& exception, const std::string& database);

}  // namespace lockkeeper::inventory
