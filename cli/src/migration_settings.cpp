#include "migration_settings.h"

#include <algorithm>
#include <array>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::cli {
namespace {

using Poco::Util::AbstractConfiguration;

// Raw, because ${NAME} is an environment variable to the store's URI and a property to Poco.
std::string text(const AbstractConfiguration& file, const std::string& name) {
  return file.getRawString("lockkeeper.migration." + name, "");
}

void readDuration(const AbstractConfiguration& file, const std::string& name,
                  std::chrono::milliseconds& out) {
  const std::string written = text(file, name);
  if (!written.empty()) out = parseDuration("lockkeeper.migration." + name, written);
}

void refuseUnknown(const AbstractConfiguration& file) {
  constexpr std::array known = {"from",      "phase", "board",  "name",
                                "heartbeat", "lease", "maxTtl", "observation"};
  AbstractConfiguration::Keys keys;
  file.keys("lockkeeper.migration", keys);
  for (const std::string& key : keys) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw ConfigError(
        "lockkeeper.migration." + key +
        " is unknown: from, phase, board, name, heartbeat, lease, maxTtl and observation are allowed");
  }
}

}  // namespace

std::optional<MigrationSettings> readMigration(const AbstractConfiguration& file) {
  refuseUnknown(file);
  MigrationSettings settings;
  settings.from = text(file, "from");
  if (settings.from.empty()) return std::nullopt;
  settings.board = text(file, "board");
  if (const std::string rules = text(file, "phase"); !rules.empty()) {
    try {
      settings.options.rules = migration::Rules::parse(rules);
    } catch (const ConfigError& error) {
      throw ConfigError(std::string("lockkeeper.migration.phase: ") + error.what());
    }
  }
  if (const std::string name = text(file, "name"); !name.empty()) settings.options.name = name;
  readDuration(file, "heartbeat", settings.options.heartbeat);
  readDuration(file, "lease", settings.options.lease);
  readDuration(file, "maxTtl", settings.options.maxTtl);
  readDuration(file, "observation", settings.options.observation);
  checkOptions(settings.options);
  return settings;
}

}  // namespace lockkeeper::cli
