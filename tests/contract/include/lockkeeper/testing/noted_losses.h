#pragma once

#include <algorithm>
#include <mutex>
#include <span>
#include <vector>

#include "lockkeeper/base/token.h"
#include "lockkeeper/driver/losses.h"

namespace lockkeeper::testing {

/// Notes which claims a driver calls lost. Thread-safe.
class NotedLosses final : public LossListener {
 public:
  void claimsLost(std::span<const Token> lost) noexcept override {
    const std::lock_guard guard(mutex_);
    noted_.insert(noted_.end(), lost.begin(), lost.end());
  }

  /// In the order in which they were told.
  std::vector<Token> noted() const {
    const std::lock_guard guard(mutex_);
    return noted_;
  }
  /// Whether it is among them.
  bool heardOf(const Token& token) const {
    const std::lock_guard guard(mutex_);
    return std::ranges::find(noted_, token) != noted_.end();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Token> noted_;
};

}  // namespace lockkeeper::testing
