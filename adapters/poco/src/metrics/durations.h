#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "lockkeeper/poco/metric_family.h"
#include "metrics/sharded.h"

namespace lockkeeper::poco {

/// How often something took how long.
struct Durations {
  static constexpr std::array bounds{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                     0.25,    0.5,    1.0,   2.5,    5.0,   10.0, 30.0,  60.0, 300.0};

  std::array<Count, bounds.size() + 1> buckets{};  // each one alone, the last without a bound
  Count nanoseconds{};

  void add(std::chrono::nanoseconds duration) noexcept {
    duration = std::max(duration, std::chrono::nanoseconds{0});
    const double seconds = std::chrono::duration<double>(duration).count();
    const auto bound = std::lower_bound(bounds.begin(), bounds.end(), seconds);
    buckets[static_cast<std::size_t>(bound - bounds.begin())].add();
    nanoseconds.add(static_cast<std::uint64_t>(duration.count()));
  }
};

/// The histogram of all shards' durations; `part(counts)` is where they are in `Counts`. Its number of
/// observations is its last bucket's, so that both agree whatever is counted meanwhile.
template <class Counts, class Part>
MetricSample histogram(const Sharded<Counts>& shards, Part part, std::vector<MetricLabel> labels) {
  MetricSample sample{.labels = std::move(labels)};
  std::uint64_t total = 0;
  for (std::size_t index = 0; index <= Durations::bounds.size(); ++index) {
    total += shards.sum([&](const Counts& counts) -> const Count& { return part(counts).buckets[index]; });
    const bool last = index == Durations::bounds.size();
    sample.buckets.push_back(
        {last ? std::numeric_limits<double>::infinity() : Durations::bounds[index], total});
  }
  const std::uint64_t sum =
      shards.sum([&](const Counts& counts) -> const Count& { return part(counts).nanoseconds; });
  sample.value = static_cast<double>(sum) / 1e9;
  return sample;
}

}  // namespace lockkeeper::poco
