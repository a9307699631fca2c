#pragma once

#include <string>

namespace lockkeeper {

/// Appends two lower-case digits.
inline void appendHex(std::string& text, unsigned char byte) {
  constexpr const char* digits = "0123456789abcdef";
  text += digits[byte >> 4];
  text += digits[byte & 15];
}

}  // namespace lockkeeper
