#include "shown.h"

#include "lockkeeper/error.h"

namespace lockkeeper::cli {

std::string oneLine(std::string_view text) {
  std::string line;
  unsigned char before = 0;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    // In UTF-8, 0xc2 and a byte below 0xa0 are a control character as well.
    const bool plain = byte >= ' ' && byte != 0x7f && !(before == 0xc2 && byte < 0xa0);
    line += plain ? each : ' ';
    before = byte;
  }
  return line;
}

std::string shown(std::string_view text) {
  std::string line = oneLine(text);
  return line == text ? line : quoted(text);
}

std::string shownLength(std::chrono::milliseconds length) {
  const auto count = length.count();
  if (count < 1000) return std::to_string(count) + " ms";
  if (count < 60'000) {
    const auto tenths = count % 1000 / 100;
    return std::to_string(count / 1000) + (tenths > 0 ? "." + std::to_string(tenths) : "") + " s";
  }
  const auto two = [](auto large, const char* largeUnit, auto small, const char* smallUnit) {
    return std::to_string(large) + largeUnit + (small > 0 ? " " + std::to_string(small) + smallUnit : "");
  };
  const auto seconds = count / 1000;
  if (seconds < 3600) return two(seconds / 60, " min", seconds % 60, " s");
  if (seconds < 86400) return two(seconds / 3600, " h", seconds % 3600 / 60, " min");
  return two(seconds / 86400, " d", seconds % 86400 / 3600, " h");
}

}  // namespace lockkeeper::cli
