#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lockkeeper/sql/connection.h"
#include "lockkeeper/sql/sql_fault.h"

namespace lockkeeper::inventory {

/// A session with the database in the file, which is made where it does not exist. Statements wait for
/// others' locks for `lockWait`, and opening for a file that it cannot read. Throws Poco's exceptions.
std::unique_ptr<sql::Connection> openSqlite(const std::string& file, std::chrono::seconds lockWait);

/// sql::classify(), for exceptions of SQLite sessions as well.
sql::SqlFault classify(const Poco::Exception& exception);

/// sql::throwAsError(), for exceptions of SQLite sessions as well.
[[noreturn]] void throwAsError(const Poco::Exception& exception, const std::string& database);

}  // namespace lockkeeper::inventory
