#pragma once

#include <cstddef>

namespace lockkeeper::poco {

/// How often this thread has used operator new.
std::size_t allocations() noexcept;

}  // namespace lockkeeper::poco
