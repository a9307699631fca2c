#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace samples {

/// Throws lockkeeper::ConfigError for the first setting SECTION.KEY whose key is not `known`.
void refuseUnknown(const Poco::Util::AbstractConfiguration& config, const std::string& section,
                   std::initializer_list<std::string_view> known);

/// A whole number. Throws lockkeeper::ConfigError that names the setting `key`, its value and the range.
unsigned numberOf(const Poco::Util::AbstractConfiguration& config, const std::string& key, unsigned otherwise,
                  unsigned least, unsigned most);

}  // namespace samples
