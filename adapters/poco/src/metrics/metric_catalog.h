#pragma once

#include <cstddef>
#include <vector>

#include "lockkeeper/poco/metric_family.h"

namespace lockkeeper::poco {

/// Where each metric is in metricCatalog().
enum Metric : std::size_t {
  acquisitions,
  waits,
  holds,
  locksHeld,
  renewals,
  losses,
  storeErrors,
  nodeRequests,
  nodeUp,
  nodeAnswers,
  rateDecisions,
  rateWaits,
  taskRuns,
  taskTimes,
  taskLastSuccess,
  taskNextRun,
  leader,
  leaderTerms,
  cacheReads,
  migrationPhase,
  httpRefusals,
};

/// All metrics, without their series.
std::vector<MetricFamily> metricCatalog();

}  // namespace lockkeeper::poco
