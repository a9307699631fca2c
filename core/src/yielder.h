#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "lockkeeper/clock.h"

namespace lockkeeper::detail {

/// The first phase of a wait that is likely to be short, before its caller sleeps in the second: meanwhile
/// the processor's other threads run, among them those that are waited for. Who finds the wait over has saved
/// itself a sleep and another thread a wake-up, which cost more than a request that is shared by many.
///
/// Threads that have more to do than a few microseconds keep the processor for milliseconds: once one did,
/// nobody yields to it for ten times as long, a second at most. Thread-safe.
///
/// Two-phase waiting is from B.-H. Lim and A. Agarwal, "Waiting algorithms for synchronization in large-scale
/// multiprocessors", 1993; there the first phase polls.
class Yielder {
 public:
  explicit Yielder(Clock& clock) noexcept : clock_(clock) {}

  /// Yields until `done()`, at most so many times. Done or not: the caller looks again, and sleeps.
  template <class Done>
  void yieldUntil(Done&& done, int turns) {
    Instant before = clock_.now();
    while (turns-- > 0 && before >= restsUntil_.load(std::memory_order_relaxed) && !done()) {
      std::this_thread::yield();
      const Instant after = clock_.now();
      if (after - before >= tooLong) {
        restsUntil_.store(after + std::min<BootTime::duration>(10 * (after - before), longestRest),
                          std::memory_order_relaxed);
      }
      before = after;
    }
  }

 private:
  static constexpr std::chrono::milliseconds tooLong{1};
  static constexpr std::chrono::seconds longestRest{1};

  Clock& clock_;
  std::atomic<Instant> restsUntil_{};
};

}  // namespace lockkeeper::detail
