#pragma once

#include <atomic>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::test {

/// The machine's clock, which a test sets forward.
class AdvancedClock final : public Clock {
 public:
  Instant now() const noexcept override { return systemClock()->now() + ahead.load(); }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    systemClock()->wait(held, wakeUp, until == Instant::max() ? until : until - ahead.load());
  }

  std::atomic<std::chrono::nanoseconds> ahead{};
};

}  // namespace lockkeeper::test
