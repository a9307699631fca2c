#pragma once

#include <cstddef>
#include <string_view>

namespace lockkeeper::poco {

/// How many characters must be changed, inserted or dropped to make one text the other (Levenshtein's
/// distance, by the two-row form of Wagner and Fischer).
std::size_t editDistance(std::string_view left, std::string_view right);

}  // namespace lockkeeper::poco
