#pragma once

#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockkeeper {

/// Throws std::invalid_argument, "WHAT is 300: 1 to 256 are allowed", unless `value` is in [least, most].
template <std::integral Number>
void checkRange(std::string_view what, Number value, std::type_identity_t<Number> least,
                std::type_identity_t<Number> most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(std::string(what) + " is " + std::to_string(value) + ": " +
                              std::to_string(least) + " to " + std::to_string(most) + " are allowed");
}

}  // namespace lockkeeper
