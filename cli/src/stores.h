#pragma once

#include <memory>

#include "command_settings.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::cli {

/// All stores that this program is built with.
StoreRegistry knownStores();

/// The driver that the settings name: a store, or a migration between two.
std::shared_ptr<LockDriver> openStore(const Settings& settings);
/// The rate limits of the store that the settings name. Throws ConfigError when that store keeps none.
std::shared_ptr<RateDriver> openRates(const Settings& settings);

}  // namespace lockkeeper::cli
