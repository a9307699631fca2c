#pragma once

#include <chrono>
#include <string>

#include "command_line.h"
#include "lockkeeper/poco/settings.h"

namespace lockkeeper::cli {

/// Where the locks are and how they are taken: from the command line, else from the file that --config names,
/// else from the environment or the default.
struct Settings : poco::Settings {
  /// The key as the store knows it.
  std::string fullKey(const std::string& key) const;
};

/// For locks: --store names the one store in which they are, also beside a file with a migration. Throws
/// UsageError for what the command line, ConfigError for what the file has wrong.
Settings readSettings(const CommandLine& line);

/// For those who look after the migration: --store names its new store. Throws the same.
Settings readMigrationSettings(const CommandLine& line);

/// The length that an option gives. Throws UsageError.
std::chrono::milliseconds durationOption(const CommandLine& line, const std::string& name,
                                         std::chrono::milliseconds otherwise);

}  // namespace lockkeeper::cli
