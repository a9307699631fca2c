#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockkeeper {

/// The decimal number that the whole text is; empty for any other text, and for a number that does not fit.
template <class Number>
std::optional<Number> wholeNumber(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  return fault == std::errc{} && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace lockkeeper
