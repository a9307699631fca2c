#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockkeeper {

/// A string with its hash, for those who need that more than once.
struct HashedString {
  explicit HashedString(std::string_view itsText)
      : text(itsText), hash(std::hash<std::string_view>{}(itsText)) {}

  std::string_view text;
  std::size_t hash;

  friend bool operator==(const HashedString& left, const std::string& right) { return left.text == right; }
};

/// Lets a string_view and a HashedString look up a string.
struct StringHash {
  using is_transparent = void;
  // Not noexcept: libstdc++ then keeps the hash beside each entry, and need not hash again those it passes.
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  std::size_t operator()(const HashedString& text) const { return text.hash; }
};

/// A hash map by string, in which a string_view finds its entry without an allocation.
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

}  // namespace lockkeeper
