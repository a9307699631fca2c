#pragma once

#include <string>

#include "database/database.h"

namespace lockkeeper::inventory {

/// Makes the tables that do not exist, adds what tables of former versions lack, and writes what was in stock
/// before there was a ledger, as `who`. Safe to do again, and from several processes at once. Throws
/// ConfigError that names the statement which the database refuses, and StoreUnavailable.
void setUpSchema(Database& database, const std::string& who);

}  // namespace lockkeeper::inventory
