#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockkeeper/listener.h"
#include "lockkeeper/poco/metric_family.h"
#include "metrics/durations.h"
#include "metrics/labelled.h"
#include "metrics/work_counts.h"

namespace lockkeeper::poco {

/// Counts the events of the locks and limits on one store. Thread-safe.
class MetricsListener final : public Listener {
 public:
  explicit MetricsListener(std::string driver) : driver_(std::move(driver)) {}

  void on(const Event& event) override;

  /// Adds its series to a metricCatalog().
  void collect(std::vector<MetricFamily>& families) const;

 private:
  using Count = std::uint64_t;

  struct Node {
    std::array<Count, 5> requests{};
    Durations answers;
    bool up = false;
  };
  struct Policy {
    std::array<Count, 4> decisions{};
    Durations waits;
  };
  /// What is counted for each kind of lock.
  struct Locks {
    std::array<Count, 4> acquisitions{};
    std::array<Count, 2> renewals{};
    std::array<Count, 4> losses{};
    Durations waits;
    Durations holds;
  };
  static void count(Node& node, const Event& event);

  void collectLocks(std::vector<MetricFamily>& families) const;
  void collectNodes(std::vector<MetricFamily>& families) const;
  void collectPolicies(std::vector<MetricFamily>& families) const;

  const std::string driver_;
  mutable std::mutex mutex_;
  std::array<Locks, 3> locks_{};  // by kind
  std::array<Count, 6> storeErrors_{};
  Labelled<Node> nodes_;
  Labelled<Policy> policies_;
  WorkCounts work_;
};

}  // namespace lockkeeper::poco
