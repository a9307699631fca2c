#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// Reads "250ms", "30s", "5m" or "1h": a whole number and a unit. Throws ConfigError that names the value and
/// its setting, `what`.
LOCKKEEPER_CORE_EXPORT std::chrono::milliseconds parseDuration(std::string_view what, std::string_view text);

/// The shortest text that parseDuration reads back as `length`.
LOCKKEEPER_CORE_EXPORT std::string formatDuration(std::chrono::milliseconds length);

/// "WHAT is 25h: it must be 10ms to 24h".
LOCKKEEPER_CORE_EXPORT std::string outOfRange(std::string_view what, std::chrono::milliseconds value,
                                              std::chrono::milliseconds least,
                                              std::chrono::milliseconds most);

/// Throws `Fault` with that message unless `value` is in [least, most].
template <class Fault = std::invalid_argument>
void checkDuration(std::string_view what, std::chrono::milliseconds value, std::chrono::milliseconds least,
                   std::chrono::milliseconds most) {
  if (value < least || value > most) throw Fault(outOfRange(what, value, least, most));
}

}  // namespace lockkeeper
