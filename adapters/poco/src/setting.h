#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::poco {

// Settings, read strictly: what is not understood is a ConfigError that names the setting, its value and what
// is allowed.

/// The names right below `root`.
std::vector<std::string> namesBelow(const Poco::Util::AbstractConfiguration& configuration,
                                    const std::string& root);

/// Refuses names below `root` that are not in `known`.
void refuseUnknown(const Poco::Util::AbstractConfiguration& configuration, const std::string& root,
                   std::initializer_list<std::string_view> known);

/// "on", "off", "true" or "false".
bool readFlag(const Poco::Util::AbstractConfiguration& configuration, const std::string& name,
              bool otherwise);

unsigned readNumber(const Poco::Util::AbstractConfiguration& configuration, const std::string& name,
                    unsigned otherwise, unsigned least, unsigned most);

}  // namespace lockkeeper::poco
