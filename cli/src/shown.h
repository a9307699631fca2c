#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace lockkeeper::cli {

/// A key, or another text that somebody has written into the store: as it is, so that it can be copied into a
/// command line, but quoted() when oneLine() would change it.
std::string shown(std::string_view text);

/// A text that may have come from a server or another program, for the terminal: the bytes of each character
/// that controls it, that is not seen or that changes the order of others (Unicode's Cc, Cf, Zl, Zp), and
/// bytes that are no UTF-8, are shown as a backslash, x and two hexadecimal digits.
std::string oneLine(std::string_view text);

/// How many columns of a terminal a result of oneLine() takes: some characters take two, and accents none.
std::size_t columnsOf(std::string_view line);

/// As much of its beginning as has room in so many columns.
std::string_view fitting(std::string_view line, std::size_t columns);

/// For people: "850 ms", "29.5 s", "3 min 12 s", "2 h 5 min" or "3 d 4 h".
std::string shownLength(std::chrono::milliseconds length);

}  // namespace lockkeeper::cli
