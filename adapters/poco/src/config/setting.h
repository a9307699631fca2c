#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/lock_options.h"
#include "lockkeeper/poco/client_options.h"

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

/// "250ms", "30s", "5m" or "1h".
std::chrono::milliseconds readDuration(const Poco::Util::AbstractConfiguration& configuration,
                                       const std::string& name, std::chrono::milliseconds otherwise);

unsigned readNumber(const Poco::Util::AbstractConfiguration& configuration, const std::string& name,
                    unsigned otherwise, unsigned least, unsigned most);

/// `lockkeeper.http.trustedProxies` and `.ipv6Prefix`.
ClientOptions readClients(const Poco::Util::AbstractConfiguration& configuration);

// What was set in code, held to the same rules.

void checkRange(const std::string& what, std::size_t value, std::size_t least, std::size_t most);

/// Throws ConfigError that names `what` unless checkName() accepts the name.
void checkSettingName(const std::string& what, const std::string& name);

/// Throws ConfigError for options that no lock may have.
void checkLock(const std::string& what, const LockOptions& options, const LockOptions& defaults = {});

}  // namespace lockkeeper::poco
