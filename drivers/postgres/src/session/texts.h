#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace lockkeeper::postgres {

/// The server's time in us, in a session whose search_path is pinned.
inline constexpr const char* microsecondsNow = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

using Names = std::initializer_list<std::pair<std::string_view, std::string>>;

/// The text, in which each name in braces is replaced by its value. One after the other, so that a value may
/// contain names that come later in the list.
inline std::string filled(std::string text, Names names) {
  for (const auto& [name, value] : names) {
    const std::string written = "{" + std::string(name) + "}";
    for (auto at = text.find(written); at != text.npos; at = text.find(written, at + value.size()))
      text.replace(at, written.size(), value);
  }
  return text;
}

}  // namespace lockkeeper::postgres
