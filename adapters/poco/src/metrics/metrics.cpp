#include "lockkeeper/poco/metrics.h"

#include <map>
#include <mutex>

#include "lockkeeper/base/key.h"
#include "metrics/exposition.h"
#include "metrics/metric_catalog.h"
#include "metrics/metrics_listener.h"

namespace lockkeeper::poco {

class Metrics::Impl {
 public:
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<MetricsListener>> listeners;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

std::shared_ptr<Listener> Metrics::listener(const std::string& driver) {
  checkName("the driver's label", driver, ".+-");
  const std::lock_guard guard(impl_->mutex);
  auto& listener = impl_->listeners[driver];
  if (!listener) listener = std::make_shared<MetricsListener>(driver);
  return listener;
}

std::vector<MetricFamily> Metrics::collect() const {
  std::vector<MetricFamily> families = metricCatalog();
  const std::lock_guard guard(impl_->mutex);
  for (const auto& [driver, listener] : impl_->listeners) listener->collect(families);
  return families;
}

std::string Metrics::text() const { return expositionOf(collect()); }

}  // namespace lockkeeper::poco
