#pragma once

#include <cstdint>

namespace lockkeeper::detail {

/// Counts the fork()s between the process's first ancestor and itself: an object that remembers another
/// number was inherited, and belongs to the parent. Costs one atomic load.
std::uint64_t forkGeneration() noexcept;

}  // namespace lockkeeper::detail
