#include "lockkeeper/poco/prometheus_collectable.h"

namespace lockkeeper::poco {
namespace {

prometheus::MetricType typeOf(MetricType type) {
  switch (type) {
    case MetricType::counter:
      return prometheus::MetricType::Counter;
    case MetricType::gauge:
      return prometheus::MetricType::Gauge;
    case MetricType::histogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric metricOf(const MetricSample& sample, MetricType type) {
  prometheus::ClientMetric metric;
  for (const MetricLabel& each : sample.labels) metric.label.push_back({std::string(each.name), each.value});
  switch (type) {
    case MetricType::counter:
      metric.counter.value = sample.value;
      break;
    case MetricType::gauge:
      metric.gauge.value = sample.value;
      break;
    case MetricType::histogram:
      metric.histogram.sample_sum = sample.value;
      metric.histogram.sample_count = sample.buckets.back().count;
      for (const MetricBucket& each : sample.buckets) {
        metric.histogram.bucket.push_back({each.count, each.upperBound});
      }
      break;
  }
  return metric;
}

}  // namespace

std::vector<prometheus::MetricFamily> PrometheusCollectable::Collect() const {
  std::vector<prometheus::MetricFamily> result;
  for (const MetricFamily& each : metrics_->collect()) {
    if (each.samples.empty()) continue;
    prometheus::MetricFamily family{std::string(each.name), std::string(each.help), typeOf(each.type), {}};
    for (const MetricSample& sample : each.samples) family.metric.push_back(metricOf(sample, each.type));
    result.push_back(std::move(family));
  }
  return result;
}

}  // namespace lockkeeper::poco
