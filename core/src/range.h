#pragma once

#include <chrono>

namespace lockkeeper::detail {

/// Throws std::invalid_argument that names the value and what is allowed, unless it is in [least, most].
void checkRange(const char* name, std::chrono::milliseconds value, std::chrono::milliseconds least,
                std::chrono::milliseconds most);

}  // namespace lockkeeper::detail
