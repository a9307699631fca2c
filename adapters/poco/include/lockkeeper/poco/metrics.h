#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/listener.h"
#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/metric_family.h"

namespace lockkeeper::poco {

/// Counts what locks and limits do, for Prometheus. docs/metrics.md lists the metrics.
///
///     auto metrics = std::make_shared<Metrics>();
///     options.environment.listener = metrics->listener("redis");
///
/// Keys are not labels, because their number has no bound. To log as well, put the listener in a
/// ListenerGroup. MetricsHandler serves the text over HTTP. Thread-safe.
class LOCKKEEPER_POCO_EXPORT Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  /// The listener that counts under the label driver="…": 1 to 64 characters of [A-Za-z0-9_.+-], or
  /// std::invalid_argument. The same one each time; it may outlive this object.
  std::shared_ptr<Listener> listener(const std::string& driver);

  /// The present values of all metrics, in a fixed order. A metric without a series yet is included, empty.
  std::vector<MetricFamily> collect() const;

  /// The same in Prometheus's text format 0.0.4.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::poco
