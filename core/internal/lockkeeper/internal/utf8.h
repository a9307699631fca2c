#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockkeeper {

/// Whether the bytes are UTF-8: shortest forms only, no surrogates, nothing beyond U+10FFFF.
inline bool isUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    const std::size_t following = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - i < following) return false;
    std::uint32_t point = first & (0x3fU >> following);
    for (const std::size_t end = i + following; i < end; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte & 0xc0U) != 0x80U) return false;
      point = point << 6U | (byte & 0x3fU);
    }
    const std::uint32_t least = following == 3 ? 0x10000 : following == 2 ? 0x800 : 0x80;
    if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return false;
  }
  return true;
}

}  // namespace lockkeeper
