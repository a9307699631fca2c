#include "lockkeeper/base/clock.h"

#include <time.h>

#include <algorithm>

namespace lockkeeper {

namespace {

// Condition variables cannot wait on CLOCK_BOOTTIME. They wait on the monotonic clock instead, which stands
// still while the machine sleeps; so each wait is cut into slices, and after a resume the caller sees the
// true time within one slice.
constexpr std::chrono::milliseconds longestSlice{500};

class SystemClock final : public Clock {
 public:
  Instant now() const noexcept override {
    timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }

  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    if (until == Instant::max()) {
      wakeUp.wait(held);
      return;
    }
    const auto left = until - now();
    if (left > left.zero()) wakeUp.wait_for(held, std::min<std::chrono::nanoseconds>(left, longestSlice));
  }
};

}  // namespace

WallTime Clock::wallNow() const noexcept {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::sys_time<std::chrono::nanoseconds>(
      std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
}

std::shared_ptr<Clock> systemClock() {
  static const auto& clock = *new auto(std::make_shared<SystemClock>());
  return clock;
}

}  // namespace lockkeeper
