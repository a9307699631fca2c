#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace lockkeeper {

/// Reads "250ms", "30s", "5m" or "1h": a whole number and a unit. Throws ConfigError that names the value
/// and, as `what`, the setting it stood in.
std::chrono::milliseconds parseDuration(std::string_view what, std::string_view text);

/// The shortest text that parseDuration reads back as `length`.
std::string formatDuration(std::chrono::milliseconds length);

}  // namespace lockkeeper
