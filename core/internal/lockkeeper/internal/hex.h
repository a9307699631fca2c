#pragma once

#include <string>

namespace lockkeeper {

inline constexpr const char* hexDigits = "0123456789abcdef";

/// Appends two lower-case digits.
inline void appendHex(std::string& text, unsigned char byte) {
  text += hexDigits[byte >> 4];
  text += hexDigits[byte & 15];
}

}  // namespace lockkeeper
