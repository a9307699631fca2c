#pragma once

#include <Poco/Util/OptionSet.h>

#include <memory>
#include <span>
#include <string>

#include "command_line.h"
#include "lockkeeper/driver.h"
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
int breakKey(const CommandLine& line);

/// The driver that the settings name, from all that this program is built with.
std::shared_ptr<LockDriver> openStore(const Settings& settings);

}  // namespace lockkeeper::cli
