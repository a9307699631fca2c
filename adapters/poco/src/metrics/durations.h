#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "lockkeeper/poco/metric_family.h"

namespace lockkeeper::poco {

/// How often something took how long. Not thread-safe.
class Durations {
 public:
  void add(std::chrono::nanoseconds duration) noexcept {
    duration = std::max(duration, std::chrono::nanoseconds{0});
    const double seconds = std::chrono::duration<double>(duration).count();
    const auto bound = std::lower_bound(bounds.begin(), bounds.end(), seconds);
    ++buckets_[static_cast<std::size_t>(bound - bounds.begin())];
    ++count_;
    sum_ += duration;
  }

  std::uint64_t count() const noexcept { return count_; }

  MetricSample histogram(std::vector<MetricLabel> labels) const {
    MetricSample sample{.labels = std::move(labels), .value = std::chrono::duration<double>(sum_).count()};
    std::uint64_t below = 0;
    for (std::size_t index = 0; index < bounds.size(); ++index) {
      below += buckets_[index];
      sample.buckets.push_back({bounds[index], below});
    }
    sample.buckets.push_back({std::numeric_limits<double>::infinity(), count_});
    return sample;
  }

 private:
  static constexpr std::array bounds{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                     0.25,    0.5,    1.0,   2.5,    5.0,   10.0, 30.0,  60.0, 300.0};

  std::array<std::uint64_t, bounds.size() + 1> buckets_{};  // each one alone, the last without a bound
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds sum_{0};
};

}  // namespace lockkeeper::poco
