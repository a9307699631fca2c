#pragma once

#include <time.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace lockkeeper::test {

/// "2026-03-29 01:00:00", in UTC.
inline std::chrono::sys_seconds moment(const std::string& text) {
  tm fields{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &fields);
  if (end == nullptr || *end != '\0') throw std::invalid_argument(text);
  return std::chrono::sys_seconds{std::chrono::seconds{::timegm(&fields)}};
}

/// The same backwards.
inline std::string text(std::chrono::sys_seconds when) {
  const time_t seconds = when.time_since_epoch().count();
  tm fields{};
  ::gmtime_r(&seconds, &fields);
  char buffer[32];
  return {buffer, ::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S", &fields)};
}

}  // namespace lockkeeper::test
