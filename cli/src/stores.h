#pragma once

#include <memory>

#include "command_settings.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/rate_driver.h"

namespace lockkeeper::cli {

/// By when a store must have answered a command that only looks: five seconds from now.
inline Instant soon() { return saturatingAdd(systemClock()->now(), std::chrono::seconds{5}); }

/// The driver that the settings name: a store, or a migration between two.
std::shared_ptr<LockDriver> openStore(const Settings& settings);
/// The rate limits of the store that the settings name. Throws ConfigError when that store keeps none.
std::shared_ptr<RateDriver> openRates(const Settings& settings);

}  // namespace lockkeeper::cli
