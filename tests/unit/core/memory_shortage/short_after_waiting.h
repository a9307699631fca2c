#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "allocations.h"
#include "lockkeeper/testing/fake_clock.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;

/// A clock on which each thread but the test's own, once it has waited, finds that one of its next
/// allocations fails: not always the same one.
class ShortAfterWaiting final : public Clock {
 public:
  explicit ShortAfterWaiting(std::shared_ptr<FakeClock> inner) : inner_(std::move(inner)) {}

  Instant now() const noexcept override { return inner_->now(); }
  WallTime wallNow() const noexcept override { return inner_->wallNow(); }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    thread_local std::optional<FailingAllocation> failing;
    if (failing && FailingAllocation::happened()) ++failures;
    failing.reset();
    inner_->wait(held, wakeUp, until);
    if (std::this_thread::get_id() != tester_) failing.emplace(waits_++ % (mostSucceeding + 1));
  }

  std::atomic<std::size_t> mostSucceeding = 5;
  std::atomic<int> failures = 0;

 private:
  const std::shared_ptr<FakeClock> inner_;
  const std::thread::id tester_ = std::this_thread::get_id();
  std::atomic<std::size_t> waits_ = 0;
};

}  // namespace lockkeeper::test
