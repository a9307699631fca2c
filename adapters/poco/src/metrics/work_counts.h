#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lockkeeper/listener.h"
#include "lockkeeper/poco/metric_family.h"
#include "metrics/durations.h"
#include "metrics/labelled.h"

namespace lockkeeper::poco {

/// Counts what is built on locks and limits: tasks, elections, caches, migrations, HTTP routes. Not
/// thread-safe.
class WorkCounts {
 public:
  /// Counts the event if it is one of those.
  void on(const Event& event);

  /// Adds its series, which begin with the label `driver`, to a metricCatalog().
  void collect(const MetricLabel& driver, std::vector<MetricFamily>& families) const;

 private:
  using Count = std::uint64_t;

  struct Task {
    std::array<Count, 7> outcomes{};
    Durations runs;
    std::optional<double> lastSuccess{};  // in seconds since 1970, as the next
    std::optional<double> nextRun{};
  };
  struct Election {
    Count terms = 0;
    bool leads = false;
  };
  struct Migration {
    std::array<bool, 3> phases{};
  };
  struct Route {
    std::map<std::pair<int, bool>, Count> refusals{};  // by status and whether it was a dry run
  };

  static void countTask(Task& task, const Event& event);

  Labelled<Task> tasks_;
  Labelled<Election> elections_;
  std::array<Count, 5> cacheReads_{};
  Labelled<Migration> migrations_;
  Labelled<Route> routes_;
};

}  // namespace lockkeeper::poco
