#include "session/statements/sql_text.h"

#include <cstddef>
#include <cstdint>

namespace lockkeeper::mysql {
namespace {

struct Sequence {
  std::size_t bytes;
  std::uint32_t least;  ///< Shorter ones can say what is below.
};

// By the first byte; none for a byte that begins no character.
Sequence sequenceOf(unsigned char lead) {
  if (lead < 0x80) return {1, 0};
  if (lead >> 5U == 0x6) return {2, 0x80};
  if (lead >> 4U == 0xe) return {3, 0x800};
  if (lead >> 3U == 0x1e) return {4, 0x10000};
  return {0, 0};
}

// As strict as the server, which refuses a literal that is none.
bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text.front());
    const auto [bytes, least] = sequenceOf(lead);
    if (bytes == 0 || bytes > text.size()) return false;
    std::uint32_t character = bytes == 1 ? lead : lead & (0x7fU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if (next >> 6U != 0x2) return false;
      character = character << 6U | (next & 0x3fU);
    }
    const bool surrogate = character >= 0xd800 && character < 0xe000;
    if (character < least || character > 0x10ffff || surrogate) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace

std::string textLiteral(std::string_view text) {
  return (isUtf8(text) ? "_utf8mb4 " : "") + hexLiteral(text);
}

}  // namespace lockkeeper::mysql
