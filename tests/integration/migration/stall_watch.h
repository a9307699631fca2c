#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace lockkeeper::test {

/// How long this machine keeps a thread waiting that wants to run: what a test must allow for.
class StallWatch {
 public:
  /// The longest time so far by which a short sleep was too long.
  std::chrono::milliseconds longest() const { return longest_.load(); }

 private:
  void watch(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds nap{5};
    while (!stop.stop_requested()) {
      const auto start = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(nap);
      const auto late =
          std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start - nap);
      longest_ = std::max(longest_.load(), late);
    }
  }

  std::atomic<std::chrono::milliseconds> longest_{std::chrono::milliseconds{0}};
  std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

}  // namespace lockkeeper::test
