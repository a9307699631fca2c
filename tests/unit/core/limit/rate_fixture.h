#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "faulty_rate_driver.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
using lockkeeper::testing::FakeRandom;

using namespace std::chrono_literals;

inline RatePolicy limit(std::string_view rate, RatePolicyOptions options = {}) {
  options.rate = Rate::parse("rate", rate);
  return RatePolicy("sms", options);
}

/// Writes down what was refused, what failed, and how long callers wait.
class RefusalListener final : public Listener {
 public:
  void on(const Event& event) override {
    const std::string key(event.key);
    if (event.kind == EventKind::attemptFailed)
      note(std::string("failed: ") + toString(*event.error) + " " + key);
    if (event.wait) noteWait(*event.wait);
    if (event.kind != EventKind::decided || event.decision->allowed) return;
    note("refused " + key + " by " + event.decision->policy + " for " +
         std::to_string(event.decision->retryAfter.count()));
  }
  std::vector<std::string> heard() const {
    const std::lock_guard guard(mutex_);
    return heard_;
  }

  std::vector<std::chrono::nanoseconds> waits() const {
    const std::lock_guard guard(mutex_);
    return waits_;
  }

 private:
  void noteWait(std::chrono::nanoseconds wait) {
    const std::lock_guard guard(mutex_);
    waits_.push_back(wait);
  }
  void note(std::string event) {
    const std::lock_guard guard(mutex_);
    heard_.push_back(std::move(event));
  }
  mutable std::mutex mutex_;
  std::vector<std::string> heard_;
  std::vector<std::chrono::nanoseconds> waits_;
};

/// A limiter on a store somewhere else, on a clock that the test moves.
class RateFixture : public ::testing::Test {
 protected:
  static constexpr auto operationTimeout = 500ms;

  RateLimiterOptions options() {
    RateLimiterOptions made{.operationTimeout = operationTimeout};
    made.environment = {clock, std::make_shared<FakeRandom>(), listener};
    return made;
  }

  template <class Call>
  static auto background(Call&& call) {
    return std::async(std::launch::async, std::forward<Call>(call));
  }

  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  std::shared_ptr<RefusalListener> listener = std::make_shared<RefusalListener>();
  std::shared_ptr<FaultyRateDriver> network = std::make_shared<FaultyRateDriver>(clock);
  RateLimiter limiter{network, options()};
  /// Another process, as far as the store can tell.
  RateLimiter other{network, options()};
};

}  // namespace lockkeeper::test
