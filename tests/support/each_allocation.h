#pragma once

#include <cstddef>
#include <functional>
#include <new>

#include "allocations.h"

namespace lockkeeper::test {

/// Runs `call` until each of its allocations on this thread has failed once, with `prepare` before and
/// `check` after each run; says how many there were. The call may end with std::bad_alloc.
template <class Call, class Check>
std::size_t failEachAllocation(
    Call&& call, Check&& check, const std::function<void()>& prepare = [] {}) {
  for (std::size_t succeeding = 0;; ++succeeding) {
    prepare();
    bool happened = false;
    {
      const FailingAllocation failing(succeeding);
      try {
        call();
      } catch (const std::bad_alloc&) {
      }
      happened = FailingAllocation::happened();
    }
    check();
    if (!happened) return succeeding;
  }
}

}  // namespace lockkeeper::test
