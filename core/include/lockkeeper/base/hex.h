#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockkeeper {

/// The digits that lockkeeper writes.
inline constexpr const char* hexDigits = "0123456789abcdef";

/// Appends two lower-case digits.
inline void appendHex(std::string& text, unsigned char byte) {
  text += hexDigits[byte >> 4];
  text += hexDigits[byte & 15];
}

/// Two lower-case digits for each byte.
inline std::string toHex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char each : bytes) appendHex(text, static_cast<unsigned char>(each));
  return text;
}

/// The bytes that toHex() has written so; empty for any other text.
inline std::optional<std::string> fromHex(std::string_view text) {
  constexpr std::string_view digits = hexDigits;
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::size_t high = digits.find(text[i]);
    const std::size_t low = digits.find(text[i + 1]);
    if (high == digits.npos || low == digits.npos) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

}  // namespace lockkeeper
