#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/memory/memory_driver.h"

namespace lockkeeper::test {

/// A store somewhere else: the embedded one, behind a network that fails and stalls on demand, and that
/// counts what passes. Thread-safe.
class FaultyRateDriver final : public RateDriver {
 public:
  explicit FaultyRateDriver(std::shared_ptr<Clock> clock) : clock_(clock), store_(std::move(clock)) {}

  void take(std::span<RateCharge> charges, Instant deadline) override {
    {
      const std::lock_guard guard(mutex_);
      times_.push_back(charges.front().times);
      leftToAnswer_.push_back(deadline - clock_->now());
    }
    if (onTake_) onTake_();
    pass("take");
    refuseWrongKey(charges);
    store_.take(charges, deadline);
    {
      std::unique_lock guard(mutex_);
      wait(guard, holdsAnswers_);
    }
    answer();
    if (clock_->now() > deadline) throw OutcomeUnknown("the answer came too late");
  }
  void peek(std::span<RateCharge> charges, Instant deadline) override {
    pass("peek");
    store_.peek(charges, deadline);
    answer();
  }
  bool refund(const RateRefund& refund, Instant deadline) override {
    pass("refund");
    const bool given = store_.refund(refund, deadline);
    answer();
    return given;
  }
  std::size_t partOf(std::string_view key) const noexcept override {
    return key.ends_with("elsewhere") ? mostParts - 1 : 0;
  }
  void reset(std::string_view key, RateKind kind, Instant deadline) override {
    pass("reset");
    store_.reset(key, kind, deadline);
    answer();
  }

  /// Until told otherwise, calls do not reach the store (`applied` false), or their answers are lost.
  void fail(bool applied = false) {
    const std::lock_guard guard(mutex_);
    (applied ? answersLost_ : down_) = true;
  }
  /// From now on this key is of the wrong type.
  void spoil(std::string key) {
    const std::lock_guard guard(mutex_);
    wrongKey_ = std::move(key);
  }
  void recover() {
    const std::lock_guard guard(mutex_);
    down_ = answersLost_ = false;
  }

  /// Called at the beginning of each take(). To be set while there is none.
  void onTake(std::function<void()> call) { onTake_ = std::move(call); }

  /// Calls stop on their way to the store until release().
  void hold() {
    const std::lock_guard guard(mutex_);
    holdsCalls_ = true;
  }
  /// Answers to take() stop on their way back until release().
  void holdAnswers() {
    const std::lock_guard guard(mutex_);
    holdsAnswers_ = true;
  }
  void release() {
    const std::lock_guard guard(mutex_);
    holdsCalls_ = holdsAnswers_ = false;
    changed_.notify_all();
  }
  /// Returns when so many calls are held; false when that takes too long.
  bool awaitHeld(int count) {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, std::chrono::seconds{10}, [&] { return held_ >= count; });
  }

  int calls() const {
    const std::lock_guard guard(mutex_);
    return calls_;
  }
  /// RateCharge::times of each take().
  std::vector<std::int64_t> times() const {
    const std::lock_guard guard(mutex_);
    return times_;
  }
  /// How much time each take() had.
  std::vector<std::chrono::nanoseconds> leftToAnswer() const {
    const std::lock_guard guard(mutex_);
    return leftToAnswer_;
  }
  RateDriver& store() { return store_; }

 private:
  void pass(const char* what) {
    std::unique_lock guard(mutex_);
    ++calls_;
    wait(guard, holdsCalls_);
    if (down_) throw StoreUnavailable(std::string(what) + ": the store is down");
  }
  void refuseWrongKey(std::span<const RateCharge> charges) const {
    const std::lock_guard guard(mutex_);
    for (const RateCharge& each : charges) {
      if (each.key == wrongKey_) throw ConfigError("the key is of the wrong type");
    }
  }
  void answer() {
    const std::lock_guard guard(mutex_);
    if (answersLost_) throw OutcomeUnknown("the answer was lost");
  }
  void wait(std::unique_lock<std::mutex>& guard, const bool& holds) {
    if (!holds) return;
    ++held_;
    changed_.notify_all();
    changed_.wait(guard, [&] { return !holds; });
    --held_;
  }

  const std::shared_ptr<Clock> clock_;
  std::function<void()> onTake_;
  MemoryDriver store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool down_ = false;
  bool answersLost_ = false;
  bool holdsCalls_ = false;
  bool holdsAnswers_ = false;
  int held_ = 0;
  int calls_ = 0;
  std::vector<std::int64_t> times_;
  std::vector<std::chrono::nanoseconds> leftToAnswer_;
  std::string wrongKey_;
};

}  // namespace lockkeeper::test
