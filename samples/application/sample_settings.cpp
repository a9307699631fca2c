#include "sample_settings.h"

#include <Poco/NumberParser.h>

#include <algorithm>

#include "lockkeeper/error.h"

namespace samples {

using lockkeeper::ConfigError;
using Poco::Util::AbstractConfiguration;

void refuseUnknown(const AbstractConfiguration& config, const std::string& section,
                   std::initializer_list<std::string_view> known) {
  AbstractConfiguration::Keys keys;
  config.keys(section, keys);
  for (const auto& key : keys) {
    if (std::ranges::find(known, key) == known.end()) {
      throw ConfigError("unknown setting " + section + "." + key);
    }
  }
}

unsigned numberOf(const AbstractConfiguration& config, const std::string& key, unsigned otherwise,
                  unsigned least, unsigned most) {
  const std::string text = config.getString(key, std::to_string(otherwise));
  unsigned value = 0;
  if (Poco::NumberParser::tryParseUnsigned(text, value) && value >= least && value <= most) return value;
  throw ConfigError(key + " is " + lockkeeper::quoted(text) + ": " + std::to_string(least) + " to " +
                    std::to_string(most) + " are allowed");
}

}  // namespace samples
