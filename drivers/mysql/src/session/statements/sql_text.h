#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "lockkeeper/base/hex.h"

// What statements are made of. Names, keys, labels and other text from outside stand in them as hexadecimal
// digits, by hexLiteral() or textLiteral(), or are bound: no character set can make anything else of
// that.

namespace lockkeeper::mysql {

/// The server's time in µs since 1970. Not its local time, which repeats an hour each year. A text in the
/// place of the date would be read at each use.
inline constexpr const char* microsecondsNow = "TIMESTAMPDIFF(MICROSECOND,DATE'1970-01-01',UTC_TIMESTAMP(6))";

/// The bytes as a literal in hexadecimal, in which nothing has to be quoted.
inline std::string hexLiteral(std::string_view bytes) {
  std::string text = "x'";
  text += toHex(bytes);
  return text += "'";
}

/// A text of the application's as a literal. Text in UTF-8 keeps its character set, so that it compares as
/// the column says; other bytes compare byte by byte.
std::string textLiteral(std::string_view text);

/// A statement after which the server ends the session when it is silent for so long.
inline std::string idleLimit(std::chrono::seconds idle) {
  return "SET SESSION wait_timeout=" + std::to_string(idle.count());
}
/// The statement that restores the server's own limit.
inline constexpr const char* noIdleLimit = "SET SESSION wait_timeout=DEFAULT";

}  // namespace lockkeeper::mysql
