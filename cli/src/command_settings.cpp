#include "command_settings.h"

#include <Poco/AutoPtr.h>
#include <Poco/Exception.h>
#include <Poco/Util/JSONConfiguration.h>
#include <Poco/Util/LayeredConfiguration.h>
#include <Poco/Util/PropertyFileConfiguration.h>
#include <Poco/Util/SystemConfiguration.h>
#include <Poco/Util/XMLConfiguration.h>

#include <cstdlib>
#include <sstream>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/text_file.h"

namespace lockkeeper::cli {
namespace {

using Configuration = Poco::AutoPtr<Poco::Util::AbstractConfiguration>;
using std::chrono::milliseconds;

constexpr std::size_t longestFile = 16 << 20;

/// The library's own reading of a file does not end where it cannot read on, as in a directory.
Configuration openFile(const std::string& path) {
  std::istringstream text(textOfFile(path, longestFile));
  try {
    if (path.ends_with(".json")) return new Poco::Util::JSONConfiguration(text);
    if (path.ends_with(".xml")) return new Poco::Util::XMLConfiguration(text);
    return new Poco::Util::PropertyFileConfiguration(text);
  } catch (const Poco::Exception&) {
    throw ConfigError("the configuration file " + lockkeeper::quoted(path) +
                      " is not written as its name says");
  }
}

/// The file that --config names, with Poco's system.* for references to them.
Poco::AutoPtr<Poco::Util::LayeredConfiguration> readFile(const CommandLine& line) {
  Poco::AutoPtr<Poco::Util::LayeredConfiguration> all(new Poco::Util::LayeredConfiguration);
  if (const auto path = line.option("config")) all->add(openFile(*path), 0);
  all->add(new Poco::Util::SystemConfiguration, 1);
  return all;
}

std::string chooseStore(const CommandLine& line, const std::string& configured) {
  if (const auto given = line.option("store")) return *given;
  if (line.has("config")) {
    if (!configured.empty()) return configured;
    throw ConfigError("the configuration file has no lockkeeper.store");
  }
  const char* inherited = std::getenv("LOCKKEEPER_STORE");
  if (inherited != nullptr && *inherited != '\0') return inherited;
  throw UsageError("which store? give --store URI, --config FILE or LOCKKEEPER_STORE in the environment");
}

}  // namespace

std::string Settings::fullKey(const std::string& key) const {
  return manager.keyNamespace.empty() ? key : manager.keyNamespace + ":" + key;
}

Settings readMigrationSettings(const CommandLine& line) {
  Settings settings{poco::readSettings(*readFile(line))};
  settings.store = chooseStore(line, settings.store);
  if (line.has("store")) settings.limiterStore.clear();
  ManagerOptions& manager = settings.manager;
  manager.keyNamespace = line.option("namespace").value_or(manager.keyNamespace);
  if (line.has("ttl")) manager.lock.ttl = durationOption(line, "ttl", {});
  manager.lock.waitFor = durationOption(line, "wait", manager.lock.waitFor.value_or(milliseconds{0}));
  return settings;
}

Settings readSettings(const CommandLine& line) {
  Settings settings = readMigrationSettings(line);
  if (line.has("store")) settings.migration.from.clear();
  return settings;
}

milliseconds durationOption(const CommandLine& line, const std::string& name, milliseconds otherwise) {
  const auto given = line.option(name);
  if (!given) return otherwise;
  try {
    return parseDuration("--" + name, *given);
  } catch (const ConfigError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace lockkeeper::cli
