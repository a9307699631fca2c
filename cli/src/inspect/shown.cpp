#include "inspect/shown.h"

#include "lockkeeper/driver/key.h"

namespace lockkeeper::cli {

std::string shown(std::string_view text) {
  bool plain = true;
  unsigned char before = 0;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    // In UTF-8, 0xc2 and a byte below 0xa0 are a control character as well.
    plain = plain && byte >= ' ' && byte != 0x7f && !(before == 0xc2 && byte < 0xa0);
    before = byte;
  }
  return plain ? std::string(text) : quoted(text);
}

}  // namespace lockkeeper::cli
