#include "text/printable.h"

#include "lockkeeper/internal/hex.h"

namespace lockkeeper::poco {

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      shown += "\\x";
      appendHex(shown, byte);
    } else {
      if (c == '\\') shown += c;
      shown += c;
    }
  }
  return text.size() > most ? shown + "..." : shown;
}

}  // namespace lockkeeper::poco
