#include "config/setting_value.h"

#include <stdexcept>

#include "lockkeeper/duration.h"

namespace lockkeeper::poco {

void parse(const GivenValue& given, bool& value) {
  value = given.text == "on" || given.text == "true";
  if (value || given.text == "off" || given.text == "false") return;
  throw ConfigError(given.setting + " is " + quoted(given.text) + ": on and off are allowed");
}

void parse(const GivenValue& given, std::chrono::milliseconds& value) {
  value = parseDuration(given.setting, given.text);
}

void parse(const GivenValue& given, std::string& value) { value = given.text; }

void parse(const GivenValue& given, Renew& value) {
  value = given.text == "manual" ? Renew::manual : Renew::automatic;
  if (given.text == written(value)) return;
  throw ConfigError(given.setting + " is " + quoted(given.text) + ": automatic and manual are allowed");
}

void parse(const GivenValue& given, migration::Rules& value) {
  try {
    value = migration::Rules::parse(given.text);
  } catch (const ConfigError& error) {
    throw ConfigError(given.setting + ": " + error.what());
  }
}

std::string written(bool value) { return value ? "on" : "off"; }
std::string written(std::chrono::milliseconds value) { return formatDuration(value); }
std::string written(const std::string& value) { return value; }
std::string written(Renew value) { return value == Renew::manual ? "manual" : "automatic"; }
std::string written(const migration::Rules& value) { return value.text(); }

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

void checkLock(const std::string& what, const LockOptions& options) {
  try {
    checkOptions(options);
  } catch (const std::invalid_argument& fault) {
    throw ConfigError(what + ": " + fault.what());
  }
}

}  // namespace lockkeeper::poco
