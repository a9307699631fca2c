#pragma once

#include <Poco/Data/Session.h>
#include <lockkeeper/rows/versioned_row.h>

#include <cstdint>

#include "every_page.h"

namespace pages {

namespace mysql = lockkeeper::mysql;
using lockkeeper::RowOutcome;
using lockkeeper::SqlRow;
using lockkeeper::SqlValue;
using lockkeeper::VersionedRow;

extern Poco::Data::Session session;
extern const std::string iban;
extern const std::int64_t amount;

}  // namespace pages
