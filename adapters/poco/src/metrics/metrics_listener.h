#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/listener.h"
#include "lockkeeper/poco/metric_family.h"
#include "metrics/durations.h"
#include "metrics/label_table.h"
#include "metrics/sharded.h"

namespace lockkeeper::poco {

/// Counts the events of the locks and limits on one store. Thread-safe.
class MetricsListener final : public Listener {
 public:
  explicit MetricsListener(std::string driver) : driver_(std::move(driver)) {}

  /// Adds its series to a metricCatalog().
  void collect(std::vector<MetricFamily>& families) const;

  void acquired(std::string_view key, std::chrono::nanoseconds waited, std::optional<Fence> fence) override;
  void timedOut(std::string_view key, std::chrono::nanoseconds waited) override;
  void gaveUp(std::string_view key, ErrorCode why, std::chrono::nanoseconds waited) override;
  void renewed(std::string_view key) override;
  void suspect(std::string_view key, std::chrono::nanoseconds remaining) override;
  void lost(std::string_view key, LossReason reason) override;
  void released(std::string_view key, std::chrono::nanoseconds held) override;
  void decided(std::string_view key, const Decision& decision) override;
  void storeFailed(std::string_view key, ErrorCode code, std::string_view message) override;
  void nodeAsked(std::string_view node, NodeOutcome outcome, std::chrono::nanoseconds latency) override;

 private:
  struct LockCounts {
    std::array<Count, 4> acquisitions;
    std::array<Count, 2> renewals;
    std::array<Count, 4> losses;
    std::array<Count, 6> storeErrors;
    Durations waits;
    Durations holds;
  };
  struct NodeCounts {
    std::array<Count, 5> requests;
    Durations answers;
  };
  struct Node {
    Sharded<NodeCounts> counts;
    std::atomic<bool> up = false;
  };
  struct PolicyCounts {
    std::array<Count, 4> decisions;
  };

  void collectLocks(std::vector<MetricFamily>& families) const;
  void collectNodes(std::vector<MetricFamily>& families) const;
  void collectPolicies(std::vector<MetricFamily>& families) const;

  const std::string driver_;
  Sharded<LockCounts> locks_;
  LabelTable<Node> nodes_;
  LabelTable<Sharded<PolicyCounts>> policies_;
};

}  // namespace lockkeeper::poco
