#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::poco {

/// As Prometheus has them.
enum class MetricType { counter, gauge, histogram };

/// One label of a time series.
struct MetricLabel {
  std::string_view name;
  std::string value;  ///< One line of ASCII.
};

/// How many observations of a histogram were `upperBound` or less.
struct MetricBucket {
  double upperBound;
  std::uint64_t count;
};

/// One time series, as it is now.
struct MetricSample {
  std::vector<MetricLabel> labels;
  double value = 0;                     ///< Of a histogram, the sum of all observations.
  std::vector<MetricBucket> buckets{};  ///< Of a histogram: in rising order, the last one infinite.
};

/// A metric with all of its series: what Prometheus and its relatives read. Durations are in seconds.
struct MetricFamily {
  std::string_view name;
  std::string_view help;
  MetricType type;
  std::vector<MetricSample> samples{};
};

}  // namespace lockkeeper::poco
