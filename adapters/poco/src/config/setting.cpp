#include "config/setting.h"

#include <Poco/NumberParser.h>

#include <algorithm>
#include <stdexcept>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {

using Poco::Util::AbstractConfiguration;

std::vector<std::string> namesBelow(const AbstractConfiguration& configuration, const std::string& root) {
  AbstractConfiguration::Keys names;
  configuration.keys(root, names);
  return names;
}

void refuseUnknown(const AbstractConfiguration& configuration, const std::string& root,
                   std::initializer_list<std::string_view> known) {
  for (const auto& name : namesBelow(configuration, root)) {
    if (std::ranges::find(known, name) != known.end()) continue;
    std::string allowed;
    for (const auto each : known) allowed.append(allowed.empty() ? "" : ", ").append(each);
    throw ConfigError("the setting " + quoted(root + "." + name) + " is unknown: below " + root + ", " +
                      allowed + " are known");
  }
}

bool readFlag(const AbstractConfiguration& configuration, const std::string& name, bool otherwise) {
  if (!configuration.has(name)) return otherwise;
  const std::string text = configuration.getString(name);
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  throw ConfigError(name + " is " + quoted(text) + ": on and off are allowed");
}

unsigned readNumber(const AbstractConfiguration& configuration, const std::string& name, unsigned otherwise,
                    unsigned least, unsigned most) {
  if (!configuration.has(name)) return otherwise;
  const std::string text = configuration.getString(name);
  unsigned value = 0;
  if (Poco::NumberParser::tryParseUnsigned(text, value) && value >= least && value <= most) return value;
  throw ConfigError(name + " is " + quoted(text) + ": " + std::to_string(least) + " to " +
                    std::to_string(most) + " are allowed");
}

std::chrono::milliseconds readDuration(const AbstractConfiguration& configuration, const std::string& name,
                                       std::chrono::milliseconds otherwise) {
  return configuration.has(name) ? parseDuration(name, configuration.getString(name)) : otherwise;
}

ClientOptions readClients(const AbstractConfiguration& configuration) {
  ClientOptions clients;
  clients.trustedProxies = configuration.getString("lockkeeper.http.trustedProxies", "");
  clients.ipv6Prefix = readNumber(configuration, "lockkeeper.http.ipv6Prefix", clients.ipv6Prefix, 1, 128);
  return clients;
}

void checkRange(const std::string& what, std::size_t value, std::size_t least, std::size_t most) {
  if (value >= least && value <= most) return;
  throw ConfigError(what + " is " + std::to_string(value) + ": " + std::to_string(least) + " to " +
                    std::to_string(most) + " are allowed");
}

void checkSettingName(const std::string& what, const std::string& name) {
  try {
    checkName(what, name);
  } catch (const std::invalid_argument& fault) {
    throw ConfigError(fault.what());
  }
}

void checkLock(const std::string& what, const LockOptions& options, const LockOptions& defaults) {
  try {
    checkOptions(options, defaults);
  } catch (const std::invalid_argument& fault) {
    throw ConfigError(what + ": " + fault.what());
  }
}

}  // namespace lockkeeper::poco
