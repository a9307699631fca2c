#include "config/setting_value.h"

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

void parse(const GivenValue& given, Missed& value) {
  value = given.text == "once" ? Missed::once : Missed::skip;
  if (given.text == written(value)) return;
  throw ConfigError(given.setting + " is " + quoted(given.text) + ": skip and once are allowed");
}

void parse(const GivenValue& given, migration::Rules& value) {
  value = asConfigured(given.setting + ": ", [&] { return migration::Rules::parse(given.text); });
}

std::string written(bool value) { return value ? "on" : "off"; }
std::string written(std::chrono::milliseconds value) { return formatDuration(value); }
std::string written(const std::string& value) { return value; }
std::string written(Renew value) { return value == Renew::manual ? "manual" : "automatic"; }
std::string written(Missed value) { return value == Missed::once ? "once" : "skip"; }
std::string written(const migration::Rules& value) { return value.text(); }

}  // namespace lockkeeper::poco
