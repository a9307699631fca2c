#pragma once

#include <cstddef>
#include <string>

#include "lockkeeper/postgres/export.h"

// What a database for VersionedRow needs of PostgreSQL, whatever library it is made of.

namespace lockkeeper::postgres {

/// The statement as PostgreSQL takes it: $1, $2 and so on in place of each '?', and names that stand in
/// backticks in the server's quotes. What stands in quotes stays as it is. Write jsonb_exists() and the like
/// for operators with a '?'. Throws std::invalid_argument unless there are `values` of them.
LOCKKEEPER_POSTGRES_EXPORT std::string numbered(const std::string& statement, std::size_t values);

/// Whether the text of an exception of Poco::Data::PostgreSQL describes a failure after which a new
/// transaction may succeed (40001, 40P01, 55P03, 57014).
LOCKKEEPER_POSTGRES_EXPORT bool tellsContention(const std::string& message);

}  // namespace lockkeeper::postgres
