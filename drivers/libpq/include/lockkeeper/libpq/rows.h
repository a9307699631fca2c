#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "lockkeeper/libpq/result.h"
#include "lockkeeper/rows/row_database.h"

namespace lockkeeper::libpq {

/// The statement in PostgreSQL's form: `parameter(0)`, `parameter(1)` and so on replace each '?', and double
/// quotes replace backticks. Text inside quotes and comments is not changed. Throws std::invalid_argument
/// unless `statement` has `values` question marks; `parameter` is called for no more than there are values.
std::string withParameters(const std::string& statement, std::size_t values,
                           const std::function<std::string(std::size_t)>& parameter);

/// A column of the result. Whole numbers are numbers, everything else is text.
SqlValue valueIn(const Result& result, std::size_t row, std::size_t column);

}  // namespace lockkeeper::libpq
