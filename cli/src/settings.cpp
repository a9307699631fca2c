#include "settings.h"

#include <Poco/AutoPtr.h>
#include <Poco/Exception.h>
#include <Poco/Util/MapConfiguration.h>
#include <Poco/Util/PropertyFileConfiguration.h>

#include <cstdlib>
#include <vector>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/key.h"
#include "lockkeeper/lock_options.h"

namespace lockkeeper::cli {
namespace {

using Configuration = Poco::AutoPtr<Poco::Util::MapConfiguration>;
using std::chrono::milliseconds;

Configuration readFile(const CommandLine& line) {
  const auto path = line.option("config");
  if (!path) return new Poco::Util::MapConfiguration;
  try {
    return new Poco::Util::PropertyFileConfiguration(*path);
  } catch (const Poco::Exception&) {
    throw ConfigError("cannot read the configuration file " + quoted(*path));
  }
}

// Raw, because ${NAME} is an environment variable to the store's URI and a property to Poco.
std::string text(const Configuration& file, const char* name) { return file->getRawString(name, ""); }

milliseconds duration(const CommandLine& line, const char* option, const Configuration& file,
                      const char* name, milliseconds otherwise) {
  const std::string written = text(file, name);
  return durationOption(line, option, written.empty() ? otherwise : parseDuration(name, written));
}

std::string chooseStore(const CommandLine& line, const Configuration& file) {
  if (const auto given = line.option("store")) return *given;
  if (line.has("config")) {
    std::string configured = text(file, "lockkeeper.store");
    if (!configured.empty()) return configured;
    throw ConfigError("the configuration file has no lockkeeper.store");
  }
  const char* inherited = std::getenv("LOCKKEEPER_STORE");
  if (inherited != nullptr && *inherited != '\0') return inherited;
  throw UsageError("which store? give --store URI, --config FILE or LOCKKEEPER_STORE in the environment");
}

}  // namespace

std::string Settings::fullKey(const std::string& key) const {
  return keyNamespace.empty() ? key : keyNamespace + ":" + key;
}

Settings readSettings(const CommandLine& line) {
  const Configuration file = readFile(line);
  const LockOptions defaults;
  return {.store = chooseStore(line, file),
          .keyNamespace = line.option("namespace").value_or(text(file, "lockkeeper.namespace")),
          .ttl = duration(line, "ttl", file, "lockkeeper.lock.ttl", defaults.ttl),
          .waitFor = duration(line, "wait", file, "lockkeeper.lock.waitFor", defaults.waitFor),
          .migration = readMigration(*file)};
}

std::map<std::string, std::string> readLimit(const CommandLine& line, const std::string& name) {
  const Configuration file = readFile(line);
  const std::string prefix = "lockkeeper.limits." + name;
  std::vector<std::string> names;
  file->keys(prefix, names);
  std::map<std::string, std::string> settings;
  for (const std::string& each : names) settings[each] = file->getRawString(prefix + "." + each);
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
