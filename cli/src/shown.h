#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace lockkeeper::cli {

/// A key, or another text that somebody has written into the store: as it is, so that it can be copied into a
/// command line, but quoted when it could control the terminal or look like another line.
std::string shown(std::string_view text);

/// A message, which may have come from a server: a space in the place of each byte that could control the
/// terminal or begin another line.
std::string oneLine(std::string_view text);

/// For people: "850 ms", "29.5 s", "3 min 12 s", "2 h 5 min" or "3 d 4 h".
std::string shownLength(std::chrono::milliseconds length);

}  // namespace lockkeeper::cli
