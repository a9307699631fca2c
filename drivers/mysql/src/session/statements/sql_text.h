#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "lockkeeper/internal/hex.h"

// What statements are made of. Names, keys, labels and other text from outside stand in them as hexadecimal
// digits, by addHexadecimal() or textLiteral(), or are bound: no character set can make anything else of
// that.

namespace lockkeeper::mysql {

/// The server's time in µs since 1970. Not its local time, which repeats an hour each year. A text in the
/// place of the date would be read at each use.
inline constexpr const char* microsecondsNow = "TIMESTAMPDIFF(MICROSECOND,DATE'1970-01-01',UTC_TIMESTAMP(6))";

/// Appends the bytes as a literal in hexadecimal, in which nothing has to be quoted.
inline void addHexadecimal(std::string& text, std::string_view bytes) {
  text += "x'";
  for (const char byte : bytes) appendHex(text, static_cast<unsigned char>(byte));
  text += "'";
}

/// A text of the application's as a literal. Text in UTF-8 keeps its character set, so that it compares as
/// the column says; other bytes compare byte by byte.
std::string textLiteral(std::string_view text);

/// Appends a statement after which the server ends the session when it is silent for so long.
inline void addIdleTimeout(std::string& batch, std::chrono::seconds idle) {
  batch.append("SET SESSION wait_timeout=").append(std::to_string(idle.count()));
}

}  // namespace lockkeeper::mysql
