#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockkeeper/libpq/result.h"
#include "lockkeeper/mysql/row_database.h"

namespace lockkeeper::inventory {

/// The statement with a literal in the place of each '?' that stands outside of quotes; names stand between
/// the server's own quotes in place of '`'. A literal has no byte that could end it, whatever the value is.
std::string withLiterals(const std::string& statement, const mysql::SqlRow& values);

/// A row of the result. Whole numbers are numbers, everything else is text.
mysql::SqlRow sqlRowIn(const libpq::Result& result, std::size_t row);

/// How many rows the statements have changed together.
std::size_t changedBy(const std::vector<libpq::Result>& results);

}  // namespace lockkeeper::inventory
