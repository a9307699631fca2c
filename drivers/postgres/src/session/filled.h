#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace lockkeeper::postgres {

/// The text with the values of the names that stand in it in braces. One after the other, so that a value may
/// contain names that come later in the list.
inline std::string filled(std::string text,
                          std::initializer_list<std::pair<std::string_view, std::string>> names) {
  for (const auto& [name, value] : names) {
    const std::string written = "{" + std::string(name) + "}";
    for (auto at = text.find(written); at != text.npos; at = text.find(written, at + value.size()))
      text.replace(at, written.size(), value);
  }
  return text;
}

}  // namespace lockkeeper::postgres
