#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <vector>

#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/metrics.h"

namespace lockkeeper::poco {

/// The metrics for an application that has prometheus-cpp already: exposer.RegisterCollectable(this). Only in
/// builds with LOCKKEEPER_WITH_PROMETHEUS_CPP. Thread-safe.
class LOCKKEEPER_POCO_EXPORT PrometheusCollectable final : public prometheus::Collectable {
 public:
  /// `metrics` may be shared with others who read them.
  explicit PrometheusCollectable(std::shared_ptr<const Metrics> metrics) : metrics_(std::move(metrics)) {}

  /// All families that have a series.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::shared_ptr<const Metrics> metrics_;
};

}  // namespace lockkeeper::poco
