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

}  // namespace lockkeeper::cli
