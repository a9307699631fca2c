#include <Poco/Exception.h>
#include <Poco/String.h>
#include <Poco/Util/AbstractConfiguration.h>

#include "config/setting_table.h"
#include "lockkeeper/error.h"
#include "lockkeeper/poco/settings.h"

namespace lockkeeper::poco {
namespace {

using Poco::Util::AbstractConfiguration;

/// Without the spaces that XML keeps around it. Empty also for JSON's null.
std::string textOf(const AbstractConfiguration& configuration, const std::string& setting) {
  try {
    return Poco::trim(configuration.getString(setting, ""));
  } catch (const Poco::Exception& error) {
    throw ConfigError(setting + " cannot be read: " + error.message());
  }
}

void readOne(const AbstractConfiguration& configuration, const std::string& setting, Settings& settings) {
  auto found = findSetting(setting);
  if (const std::string_view instead = insteadOf(setting); !instead.empty()) {
    throw ConfigError("the setting " + quoted(setting) + " is no longer supported: " + std::string(instead));
  }
  if (!found) {
    throw ConfigError("the setting " + quoted(setting) + " is unknown: did you mean " +
                      nearestSetting(setting) + "?");
  }
  std::string text = textOf(configuration, setting);
  if (!text.empty()) found->row->read(settings, {setting, std::move(found->names), std::move(text)});
}

void readBelow(const AbstractConfiguration& configuration, const std::string& root, Settings& settings) {
  AbstractConfiguration::Keys segments;
  configuration.keys(root, segments);
  for (const std::string& segment : segments) {
    const std::string setting = root + "." + segment;
    AbstractConfiguration::Keys below;
    configuration.keys(setting, below);
    if (below.empty()) {
      readOne(configuration, setting, settings);
      continue;
    }
    // Names may have dots, so `limits.a = …` and `limits.a.b = …` can both be settings: refused, since not
    // all kinds of files can tell the first one from a section.
    if (configuration.has(setting) && findSetting(setting)) {
      throw ConfigError(setting + " is a setting: there can be none below it, such as " + setting + "." +
                        below.front());
    }
    readBelow(configuration, setting, settings);
  }
}

}  // namespace

Settings readSettings(const AbstractConfiguration& configuration) {
  Settings settings;
  readBelow(configuration, "lockkeeper", settings);
  settings.limiter.keyNamespace = settings.manager.keyNamespace;
  asConfigured("lockkeeper.lock: ", [&] { checkOptions(settings.manager); });
  asConfigured("lockkeeper.", [&] { checkOptions(settings.migration.options); });  // it names the rest itself
  return settings;
}

std::map<std::string, RatePolicy, std::less<>> Settings::policies() const {
  std::map<std::string, RatePolicy, std::less<>> all;
  for (const auto& [name, texts] : limits) all.emplace(name, RatePolicy::parse(name, texts));
  return all;
}

}  // namespace lockkeeper::poco
