#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockkeeper::poco {

/// The first `most` bytes of `text` in one line of ASCII: other bytes are shown as \xNN, a backslash as two,
/// and what was left out as "...".
std::string printable(std::string_view text, std::size_t most);

}  // namespace lockkeeper::poco
