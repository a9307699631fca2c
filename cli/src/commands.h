#pragma once

#include <Poco/Util/OptionSet.h>

#include <memory>
#include <span>
#include <string>

#include "command_line.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/store_registry.h"
#include "settings.h"

namespace lockkeeper::cli {

/// One word after `lockkeeper`: what it takes, how it is explained, what it does.
struct Command {
  const char* name;
  const char* summary;
  const char* usage;
  const char* header;
  const char* footer;
  Poco::Util::OptionSet (*options)();
  /// Returns the exit code. Throws UsageError, or what the library throws.
  int (*execute)(const CommandLine& line);
};

std::span<const Command> commands();

int runUnderLock(const CommandLine& line);
int showKey(const CommandLine& line);
int listKeys(const CommandLine& line);
int watchKeys(const CommandLine& line);
int serveConsole(const CommandLine& line);
int breakKey(const CommandLine& line);
int limitKey(const CommandLine& line);

/// All stores that this program is built with.
StoreRegistry knownStores();

/// The driver that the settings name: a store, or a migration between two.
std::shared_ptr<LockDriver> openStore(const Settings& settings);
/// The rate limits of the store that the settings name. Throws ConfigError when that store keeps none.
std::shared_ptr<RateDriver> openRates(const Settings& settings);

}  // namespace lockkeeper::cli
