#pragma once

#include "lockkeeper/mysql/row_database.h"
#include "lockkeeper/rows/versioned_row.h"

namespace lockkeeper::mysql {

using lockkeeper::RetryOptions;
using lockkeeper::RowOutcome;
using lockkeeper::RowWrite;
using lockkeeper::VersionedRow;
using lockkeeper::VersionedTable;

}  // namespace lockkeeper::mysql
