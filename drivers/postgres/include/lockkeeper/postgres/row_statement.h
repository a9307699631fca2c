#pragma once

#include <cstddef>
#include <string>

#include "lockkeeper/postgres/export.h"

// What each database for VersionedRow on PostgreSQL needs, whatever client library it uses.

namespace lockkeeper::postgres {

/// The statement in PostgreSQL's form: $1, $2 and so on replace each '?', and double quotes replace
/// backticks. Text inside quotes and comments is not changed. Instead of an operator that contains a '?',
/// write a function such as jsonb_exists(). Throws std::invalid_argument unless `statement` has `values`
/// question marks.
LOCKKEEPER_POSTGRES_EXPORT std::string numbered(const std::string& statement, std::size_t values);

/// Whether `message`, the text of an exception of Poco::Data::PostgreSQL, describes a failure after which a
/// new transaction may succeed (40001, 40P01, 55P03, 57014).
LOCKKEEPER_POSTGRES_EXPORT bool tellsContention(const std::string& message);

}  // namespace lockkeeper::postgres
