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
      {"lockkeeper_rate_wait_seconds",
       "How long callers of takeOrWait() and reserve() wait until they may go.", histogram},
      {"lockkeeper_task_runs_total", "Runs of tasks and ticks without one, by task and what came of them.",
       counter},
      {"lockkeeper_task_run_seconds", "How long runs of tasks took.", histogram},
      {"lockkeeper_task_last_success_timestamp_seconds", "When this process last ran the task to its end.",
       gauge},
      {"lockkeeper_task_next_run_timestamp_seconds", "When the next tick of the task comes.", gauge},
      {"lockkeeper_leader", "1 while this process is the leader of the election, else 0.", gauge},
      {"lockkeeper_leader_terms_total", "Terms of this process as the leader of the election.", counter},
      {"lockkeeper_cache_reads_total", "What cached loaders did, by result.", counter},
      {"lockkeeper_migration_phase", "1 for each phase that the rules of the migration in force name.",
       gauge},
      {"lockkeeper_http_refusals_total", "Requests refused by a filter, by route and status.", counter},
  };
}

}  // namespace lockkeeper::poco
