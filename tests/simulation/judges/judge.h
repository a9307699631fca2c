#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

/// What went wrong in a history, and whether its calls end in time.
class Judge {
 public:
  explicit Judge(Scheduler& scheduler) : scheduler_(scheduler) {}

  void fail(const std::string& whose, const std::string& what) {
    faults_.push_back("at " + std::to_string(static_cast<double>(scheduler_.now()) / 1e9) + " s: " + whose +
                      " " + what);
  }
  const std::vector<std::string>& faults() const noexcept { return faults_; }

  /// Nothing goes wrong in this history.
  bool calm = false;

  /// A process stands still until then.
  void paused(Time until) {
    pausedUntil_ = std::max(pausedUntil_, until);
    ++pauses_;
  }
  std::uint64_t pauses() const noexcept { return pauses_; }
  /// Whether some process stands still, or was paused after there had been so many pauses.
  bool pausedSince(std::uint64_t pauses) const noexcept {
    return pauses_ != pauses || pausedUntil_ >= scheduler_.now();
  }

  struct Call {
    Time began;
    std::uint64_t pausesBefore;
    bool pausedThen;
  };
  Call callBegins() const { return {scheduler_.now(), pauses_, pausedUntil_ >= scheduler_.now()}; }
  /// The call may last for `waitFor`, and for `rest` in which it asks the store; unless somebody was paused.
  void callEnds(const Call& call, const std::string& key, std::chrono::milliseconds waitFor,
                std::chrono::milliseconds rest) {
    const Time most = std::chrono::nanoseconds(waitFor + rest).count() + 100 * millisecond;
    const Time length = scheduler_.now() - call.began;
    if (pauses_ != call.pausesBefore || call.pausedThen || length <= most) return;
    fail(key, "was waited for " + std::to_string(length / millisecond) + " ms instead of " +
                  std::to_string(waitFor.count()));
  }

 private:
  Scheduler& scheduler_;
  std::vector<std::string> faults_;
  std::uint64_t pauses_ = 0;
  Time pausedUntil_ = 0;
};

}  // namespace lockkeeper::simulation
