#pragma once

#include <cstddef>

namespace lockkeeper::test {

/// How often this thread has called operator new.
std::size_t allocationsOfThisThread() noexcept;

/// So many of them each of 1,000 calls takes on average, after 1,000 others: fewer might leave out a shard
/// that is chosen at random.
template <class Call>
double allocationsOfEach(Call&& call) {
  constexpr int calls = 1000;
  for (int i = 0; i < calls; ++i) call();
  const std::size_t before = allocationsOfThisThread();
  for (int i = 0; i < calls; ++i) call();
  return static_cast<double>(allocationsOfThisThread() - before) / calls;
}

/// Lets one allocation of this thread fail with std::bad_alloc: the one after the next `succeeding`.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::size_t succeeding) noexcept;
  FailingAllocation(const FailingAllocation&) = delete;
  ~FailingAllocation();

  /// Whether it came to that.
  static bool happened() noexcept;
};

}  // namespace lockkeeper::test
