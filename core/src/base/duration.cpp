#include "lockkeeper/duration.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper {

namespace {
// Largest first, so that formatting finds the shortest text.
constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> units{
    {{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
}  // namespace

std::chrono::milliseconds parseDuration(std::string_view what, std::string_view text) {
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && count >= 0) {
    for (const auto& [name, milliseconds] : units) {
      if (std::string_view(rest, end) != name) continue;
      if (count > std::numeric_limits<std::int64_t>::max() / milliseconds) break;
      return std::chrono::milliseconds(count * milliseconds);
    }
  }
  throw ConfigError(std::string(what) + ": " + quoted(text) +
                    " is not a duration: a whole number with a unit is, such as 250ms, 30s, 5m or 1h");
}

std::string formatDuration(std::chrono::milliseconds length) {
  for (const auto& [name, milliseconds] : units) {
    if (length.count() != 0 && length.count() % milliseconds == 0) {
      return std::to_string(length.count() / milliseconds).append(name);
    }
  }
  return "0s";
}

std::string outOfRange(std::string_view what, std::chrono::milliseconds value,
                       std::chrono::milliseconds least, std::chrono::milliseconds most) {
  return std::string(what) + " is " + formatDuration(value) + ": it must be " + formatDuration(least) +
         " to " + formatDuration(most);
}

}  // namespace lockkeeper
