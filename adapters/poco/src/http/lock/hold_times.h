#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace lockkeeper::poco {

/// How long the requests of each route have held their locks lately. Thread-safe.
class HoldTimes {
 public:
  void add(std::string_view route, std::chrono::nanoseconds held) {
    const std::lock_guard guard(mutex_);
    const auto known = means_.find(route);
    if (known == means_.end()) {
      means_.emplace(route, held);
    } else {
      known->second += (held - known->second) / weight;
    }
  }

  /// When a busy lock of the route may be free: their mean, in whole seconds, 1 to 60.
  std::chrono::seconds usual(std::string_view route) const {
    const std::lock_guard guard(mutex_);
    const auto known = means_.find(route);
    if (known == means_.end()) return shortest;
    return std::clamp(std::chrono::ceil<std::chrono::seconds>(known->second), shortest, longest);
  }

 private:
  static constexpr int weight = 8;  // of the past: each new one counts for an eighth
  static constexpr std::chrono::seconds shortest{1};
  static constexpr std::chrono::seconds longest{60};

  mutable std::mutex mutex_;
  std::map<std::string, std::chrono::nanoseconds, std::less<>> means_;  // routes are few
};

}  // namespace lockkeeper::poco
