#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockkeeper {

/// Lets a string_view look up a string.
struct StringHash : std::hash<std::string_view> {
  using is_transparent = void;
};

/// A hash map by string, in which a string_view finds its entry without an allocation.
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

}  // namespace lockkeeper
