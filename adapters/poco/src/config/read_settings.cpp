#include <Poco/Exception.h>
#include <Poco/String.h>
#include <Poco/Util/AbstractConfiguration.h>

#include <stdexcept>

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

void readOne(const AbstractConfiguration& configuration, const std::string& setting, Settings& settings) {
  auto found = findSetting(setting);
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

/// Throws ConfigError for options out of range. `where` and what checkOptions() says name the setting.
template <class Options>
void checkRanges(const std::string& where, const Options& options) {
  try {
    checkOptions(options);
  } catch (const std::invalid_argument& error) {
    throw ConfigError(where + error.what());
  }
}

}  // namespace

Settings readSettings(const AbstractConfiguration& configuration) {
  Settings settings;
  readBelow(configuration, "lockkeeper", settings);
  settings.limiter.keyNamespace = settings.manager.keyNamespace;
  checkRanges("lockkeeper.lock: ", settings.manager);
  checkRanges("lockkeeper.", settings.migration.options);
  return settings;
}

std::map<std::string, RatePolicy, std::less<>> Settings::policies() const {
  std::map<std::string, RatePolicy, std::less<>> all;
  for (const auto& [name, texts] : limits) all.emplace(name, RatePolicy::parse(name, texts));
  return all;
}

RateLimitOptions RateLimitOptions::fromConfiguration(const AbstractConfiguration& configuration) {
  const Settings settings = readSettings(configuration);
  RateLimitOptions options = settings.http.limits;
  options.policies = settings.policies();
  options.clients = settings.http.clients;
  return options;
}

RequestLockOptions RequestLockOptions::fromConfiguration(const AbstractConfiguration& configuration) {
  const Settings settings = readSettings(configuration);
  RequestLockOptions options = settings.http.locks;
  options.clients = settings.http.clients;
  return options;
}

IdempotencyOptions IdempotencyOptions::fromConfiguration(const AbstractConfiguration& configuration) {
  const Settings settings = readSettings(configuration);
  IdempotencyOptions options = settings.http.idempotency;
  options.clients = settings.http.clients;
  options.keyNamespace = settings.manager.keyNamespace;
  return options;
}

}  // namespace lockkeeper::poco
