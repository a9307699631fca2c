#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace lockkeeper::test {

/// Asks `condition` again and again until it is true; false when it still is not after `bound`. For
/// conditions of other processes and threads that cannot notify. Blocks.
template <class Condition>
bool waitUntil(Condition&& condition, std::chrono::milliseconds bound = std::chrono::seconds{20}) {
  using Clock = std::chrono::steady_clock;
  constexpr Clock::duration shortestPause = std::chrono::milliseconds{2};
  constexpr Clock::duration longestPause = std::chrono::milliseconds{100};
  // A question that takes a session or a program of its own must not keep the machine from what is waited
  // for.
  constexpr int pausePerQuestion = 4;
  const auto end = Clock::now() + bound;
  for (;;) {
    const auto asked = Clock::now();
    if (condition()) return true;
    const auto answered = Clock::now();
    if (answered >= end) return std::forward<Condition>(condition)();
    std::this_thread::sleep_for(
        std::clamp(pausePerQuestion * (answered - asked), shortestPause, longestPause));
  }
}

}  // namespace lockkeeper::test
