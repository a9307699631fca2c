#pragma once

#include <string>

#include "lockkeeper/mysql/export.h"
#include "lockkeeper/rows/row_database.h"

namespace lockkeeper::mysql {

using lockkeeper::RowDatabase;
using lockkeeper::RowTransaction;
using lockkeeper::SqlRow;
using lockkeeper::SqlStatement;
using lockkeeper::SqlValue;

/// Whether the text of an exception of Poco::Data::MySQL describes a failure after which a new transaction
/// may succeed (errors 1020, 1205, 1213, 1317).
LOCKKEEPER_MYSQL_EXPORT bool tellsContention(const std::string& message);

}  // namespace lockkeeper::mysql
