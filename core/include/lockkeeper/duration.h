#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// Reads "250ms", "30s", "5m" or "1h": a whole number and a unit. Throws ConfigError that names the value
/// and, as `what`, the setting it stood in.
LOCKKEEPER_CORE_EXPORT std::chrono::milliseconds parseDuration(std::string_view what, std::string_view text);

/// The shortest text that parseDuration reads back as `length`.
LOCKKEEPER_CORE_EXPORT std::string formatDuration(std::chrono::milliseconds length);

}  // namespace lockkeeper
