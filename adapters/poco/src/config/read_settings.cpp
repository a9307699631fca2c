#include <Poco/Exception.h>
#include <Poco/String.h>
#include <Poco/Util/AbstractConfiguration.h>

#include <stdexcept>

#include "config/setting.h"
#include "config/setting_table.h"
#include "lockkeeper/driver/key.h"
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

void readBelow(const AbstractConfiguration& configuration, const std::string& root, Settings& settings) {
  for (const std::string& segment : namesBelow(configuration, root)) {
    const std::string setting = root + "." + segment;
    if (!namesBelow(configuration, setting).empty()) {
      readBelow(configuration, setting, settings);
      continue;
    }
    const SettingRow* row = findSetting(setting);
    if (row == nullptr) {
      throw ConfigError("the setting " + quoted(setting) + " is unknown: did you mean " +
                        nearestSetting(setting) + "?");
    }
    if (row->read == nullptr) continue;
    std::string text = textOf(configuration, setting);
    if (!text.empty()) row->read(settings, {setting, std::move(text)});
  }
}

}  // namespace

Settings readSettings(const AbstractConfiguration& configuration) {
  Settings settings;
  for (const SettingRow& row : settingTable()) {
    const bool everywhere = row.name.find('*') == std::string_view::npos;
    if (everywhere && row.hasFallback() && row.read != nullptr) {
      row.read(settings, {std::string(row.name), std::string(row.fallback)});
    }
  }
  readBelow(configuration, "lockkeeper", settings);
  settings.limiter.keyNamespace = settings.manager.keyNamespace;
  try {
    checkOptions(settings.migration.options);
  } catch (const std::invalid_argument& error) {
    throw ConfigError(std::string("lockkeeper.") + error.what());
  }
  return settings;
}

std::map<std::string, RatePolicy, std::less<>> readPolicies(const AbstractConfiguration& configuration) {
  Settings settings;
  readBelow(configuration, "lockkeeper.limits", settings);
  return settings.policies();
}

std::map<std::string, RatePolicy, std::less<>> Settings::policies() const {
  std::map<std::string, RatePolicy, std::less<>> all;
  for (const auto& [name, texts] : limits) all.emplace(name, RatePolicy::parse(name, texts));
  return all;
}

}  // namespace lockkeeper::poco
