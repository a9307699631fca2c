#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace lockkeeper::bench {

using Seconds = std::chrono::duration<double>;

/// What callers got in some time.
struct Result {
  double perSecond = 0;
  double half = 0;     ///< Of the calls took no more, s.
  double p99 = 0;      ///< s
  double longest = 0;  ///< s
};

/// `call` is made by each thread, which gives its number, again and again: `perSecond` times a second by all
/// of them together at most, so that they leave time to each other.
inline Result drive(int threads, Seconds length, const std::function<void(int thread)>& call,
                    double perSecond = std::numeric_limits<double>::infinity()) {
  constexpr int burst = 20;
  const Seconds pause(burst * threads / perSecond);
  using SteadyClock = std::chrono::steady_clock;
  std::atomic<bool> stop = false;
  std::vector<std::vector<double>> times(static_cast<std::size_t>(threads));
  const auto began = SteadyClock::now();
  {
    std::vector<std::jthread> callers;
    for (int thread = 0; thread < threads; ++thread) {
      callers.emplace_back([&, thread] {
        auto& own = times[static_cast<std::size_t>(thread)];
        while (!stop) {
          const auto next = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(pause);
          for (int i = 0; i < burst && !stop; ++i) {
            const auto asked = SteadyClock::now();
            call(thread);
            own.push_back(Seconds(SteadyClock::now() - asked).count());
          }
          if (pause.count() > 0) std::this_thread::sleep_until(next);
        }
      });
    }
    std::this_thread::sleep_for(length);
    stop = true;
  }
  const double took = Seconds(SteadyClock::now() - began).count();
  std::vector<double> all;
  for (const auto& each : times) all.insert(all.end(), each.begin(), each.end());
  std::ranges::sort(all);
  if (all.empty()) return {};
  return {.perSecond = static_cast<double>(all.size()) / took,
          .half = all[all.size() / 2],
          .p99 = all[all.size() * 99 / 100],
          .longest = all.back()};
}

}  // namespace lockkeeper::bench
