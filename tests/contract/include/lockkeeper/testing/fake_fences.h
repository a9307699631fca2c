#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/error.h"
#include "lockkeeper/store/fence_source.h"

namespace lockkeeper::testing {

/// Fences from a map in this process, for drivers that take a FenceSource. Thread-safe.
class FakeFences final : public FenceSource {
 public:
  Fence next(const Claim& claim, bool resend, Instant) override {
    const std::lock_guard guard(mutex_);
    ++calls_;
    if (failing_) throw OutcomeUnknown("the fake source of fences fails");
    Counter& counter = counters_[std::string(claim.key)];
    if (!resend || counter.token != claim.token) ++counter.last;
    counter.token = claim.token;
    return counter.last;
  }

  std::optional<Fence> last(std::string_view key, Instant) override {
    const std::lock_guard guard(mutex_);
    const auto found = counters_.find(std::string(key));
    return found == counters_.end() ? std::nullopt : std::optional(found->second.last);
  }

  FencePromise promise() const override { return FencePromise::durable; }

  /// Whether next() throws OutcomeUnknown.
  void fail(bool failing) {
    const std::lock_guard guard(mutex_);
    failing_ = failing;
  }

  /// How often next() was called.
  int calls() const {
    const std::lock_guard guard(mutex_);
    return calls_;
  }

 private:
  struct Counter {
    Fence last = 0;
    std::optional<Token> token;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Counter> counters_;
  bool failing_ = false;
  int calls_ = 0;
};

}  // namespace lockkeeper::testing
