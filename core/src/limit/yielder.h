#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "lockkeeper/driver/clock.h"

namespace lockkeeper::detail {

/// The first phase of a wait that is likely to be short, before its caller sleeps in the second: meanwhile
/// the processor's other threads run, among them those that are waited for. Who finds the wait over has saved
/// itself a sleep and another thread a wake-up, which cost more than a request that is shared by many.
///
/// Threads that have more to do than a few microseconds keep the processor for milliseconds: once one did,
/// nobody yields for a rest of a millisecond. A rest that was too short, because the yields after it are
/// as long, is followed by one twice as long, up to a tenth of a second. Thread-safe.
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
      after - before < tooLong ? countShort() : rest(before, after);
      before = after;
    }
  }

 private:
  static constexpr std::chrono::milliseconds tooLong{1};
  static constexpr std::chrono::milliseconds shortestRest{1};
  static constexpr std::chrono::milliseconds longestRest{100};
  static constexpr int enough = 1000;

  void countShort() {
    if (shortYields_.load(std::memory_order_relaxed) < enough)
      shortYields_.fetch_add(1, std::memory_order_relaxed);
  }

  void rest(Instant before, Instant after) {
    Instant until = restsUntil_.load(std::memory_order_relaxed);
    if (before < until) return;  // another one has noticed the same
    const bool isFirst = shortYields_.load(std::memory_order_relaxed) >= enough;
    const auto length =
        isFirst ? shortestRest : std::min(2 * length_.load(std::memory_order_relaxed), longestRest);
    if (!restsUntil_.compare_exchange_strong(until, after + length, std::memory_order_relaxed)) return;
    length_.store(length, std::memory_order_relaxed);
    shortYields_.store(0, std::memory_order_relaxed);
  }

  Clock& clock_;
  std::atomic<Instant> restsUntil_{};
  std::atomic<std::chrono::milliseconds> length_{shortestRest};
  std::atomic<int> shortYields_ = enough;  ///< Since the last rest, if they are fewer.
};

}  // namespace lockkeeper::detail
