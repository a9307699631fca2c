#pragma once

#include <string>

#include "lockkeeper/lock_manager.h"
#include "settings.h"

namespace flash_sale {

// What the program can do. `database` is settings.database, or the temporary one. Each returns the exit code.

/// Holds the sale in every way, prints the table, and judges it.
int demonstrate(const Settings& settings, const std::string& database, lockkeeper::LockManager& locks);

/// Runs the HTTP server until SIGINT or SIGTERM.
int serve(const Settings& settings, const std::string& database, lockkeeper::LockManager& locks);

}  // namespace flash_sale
