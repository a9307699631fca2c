#pragma once

#include <string>
#include <string_view>

#include "lockkeeper/store_uri.h"
#include "session/sessions.h"

namespace lockkeeper::postgres {

/// The parameter `table` of the URI, with which the names of all tables begin. Throws ConfigError unless they
/// can be names.
std::string tableOf(const StoreUri& uri);

/// The quoted name of a table, with its schema; `suffix` is what it has behind `table`.
std::string quotedTable(const std::string& schema, const std::string& table, std::string_view suffix = "");

/// The tables that the file `file` with this script makes, under the names that the URI gives them.
Tables namedTables(std::string script, std::string file, const std::string& schema, const std::string& table);

}  // namespace lockkeeper::postgres
