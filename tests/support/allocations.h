#pragma once

#include <cstddef>

namespace lockkeeper::testing {

/// How often this thread has called operator new.
std::size_t allocationsOfThisThread() noexcept;

/// Lets one allocation of this thread fail with std::bad_alloc: the one after the next `succeeding`.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::size_t succeeding) noexcept;
  FailingAllocation(const FailingAllocation&) = delete;
  ~FailingAllocation();

  /// Whether it came to that.
  static bool happened() noexcept;
};

}  // namespace lockkeeper::testing
