#pragma once

#include <array>
#include <chrono>

namespace lockkeeper::test {

/// What the processes of a history lock.
inline constexpr std::array historyKeys{"a", "b", "c"};

/// A second or two are the shortest that each store takes.
inline constexpr std::chrono::seconds historyTtl{2};

/// How long a call may take besides its wait: an operationTimeout and an I/O timeout, on a machine that is
/// busy with other things.
inline constexpr std::chrono::seconds longestAnswer{2 + 3 + 5};

}  // namespace lockkeeper::test
