#include "metrics/metric_catalog.h"

namespace lockkeeper::poco {

std::vector<MetricFamily> metricCatalog() {
  using enum MetricType;
  return {
      {"lockkeeper_lock_acquisitions_total", "Calls that asked for a lock, by what came of them.", counter},
      {"lockkeeper_lock_wait_seconds", "How long calls waited for the lock that they were granted.",
       histogram},
      {"lockkeeper_lock_hold_seconds", "How long locks were held that were released, not lost.", histogram},
      {"lockkeeper_locks_held", "Locks held by this process now.", gauge},
      {"lockkeeper_lock_renewals_total", "Renewals of leases, by what came of them.", counter},
      {"lockkeeper_lock_losses_total", "Locks that were lost while they were held, by reason.", counter},
      {"lockkeeper_store_errors_total", "Attempts at the store that failed, by kind of error.", counter},
      {"lockkeeper_node_requests_total", "Requests to each node of a quorum, by what came of them.", counter},
      {"lockkeeper_node_up", "1 since a node's last answer, 0 since its last failure or before any answer.",
       gauge},
      {"lockkeeper_node_answer_seconds", "How long a node of a quorum took to answer.", histogram},
      {"lockkeeper_rate_decisions_total", "What each rate limit said, by limit, result and who decided.",
       counter},
  };
}

}  // namespace lockkeeper::poco
