#pragma once

#include <lockkeeper/driver/driver.h>

#include <memory>
#include <string>

/// Locks for the processes of one machine, in the SQLite file `path`.
std::shared_ptr<lockkeeper::LockDriver> sqliteDriver(
    const std::string& path, std::shared_ptr<lockkeeper::Clock> clock = lockkeeper::systemClock());
