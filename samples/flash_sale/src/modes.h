#pragma once

#include "lockkeeper/lock_manager.h"
#include "settings.h"

namespace flash_sale {

// What the program can do. Each returns the exit code.

/// Holds the sale in every way, prints the table, and judges it.
int demonstrate(const Settings& settings, lockkeeper::LockManager& locks);

/// Runs the HTTP server until SIGINT or SIGTERM.
int serve(const Settings& settings, lockkeeper::LockManager& locks);

}  // namespace flash_sale
