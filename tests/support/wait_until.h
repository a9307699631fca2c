#pragma once

#include <chrono>
#include <thread>
#include <utility>

namespace lockkeeper::test {

/// Asks `condition` again and again until it is true; false when it still is not after `bound`. For
/// conditions of other processes and threads that cannot notify. Blocks.
template <class Condition>
bool waitUntil(Condition&& condition, std::chrono::milliseconds bound = std::chrono::seconds{20}) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return std::forward<Condition>(condition)();
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

}  // namespace lockkeeper::test
