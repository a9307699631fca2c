#include "metrics/work_counts.h"

#include <chrono>
#include <string>

#include "lockkeeper/migration/rules.h"
#include "metrics/metric_catalog.h"

namespace lockkeeper::poco {

namespace {

using migration::Phase;

// What is counted by each index of an array: the label's value.
constexpr std::array taskOutcomes{"done", "lost", "threw", "skipped", "stopped", "store_failed", "missed"};
constexpr std::array cacheResults{"hit", "stale", "loaded", "load_failed", "not_stored"};
constexpr std::array phases{Phase::legacy, Phase::both, Phase::modern};

double secondsSince1970(std::chrono::nanoseconds fromNow) {
  using std::chrono::milliseconds;  // all formats have the digits for them
  const auto when = std::chrono::system_clock::now().time_since_epoch() + fromNow;
  return std::chrono::duration<double>(std::chrono::floor<milliseconds>(when)).count();
}

}  // namespace

void WorkCounts::countTask(Task& task, const Event& event) {
  ++task.outcomes[static_cast<std::size_t>(event.task)];
  if (event.task == TaskOutcome::done) task.lastSuccess = secondsSince1970({});
  if (event.task == TaskOutcome::done || event.task == TaskOutcome::lost ||
      event.task == TaskOutcome::threw) {
    task.runs.add(event.duration());
  }
}

void WorkCounts::on(const Event& event) {
  switch (event.kind) {
    case EventKind::taskEnded:
      return countTask(tasks_.of(event.key), event);
    case EventKind::taskPlanned:
      tasks_.of(event.key).nextRun = secondsSince1970(event.remaining);
      return;
    case EventKind::scheduleEnded:
      tasks_.of(event.key).nextRun.reset();
      return;
    case EventKind::termBegan:
      ++elections_.of(event.key).terms;
      elections_.of(event.key).leads = true;
      return;
    case EventKind::termEnded:
      elections_.of(event.key).leads = false;
      return;
    case EventKind::cacheHit:
    case EventKind::cacheStale:
    case EventKind::cacheLoaded:
    case EventKind::loadFailed:
    case EventKind::notStored:
      ++cacheReads_[static_cast<std::size_t>(event.kind) - static_cast<std::size_t>(EventKind::cacheHit)];
      return;
    case EventKind::phaseChanged: {
      const auto rules = migration::Rules::parse(event.text);
      Migration& migration = migrations_.of(event.key);
      for (std::size_t index = 0; index < phases.size(); ++index) {
        migration.phases[index] = rules.mentions(phases[index]);
      }
      return;
    }
    case EventKind::requestRefused:
      ++routes_.of(event.key).refusals[{event.status, event.dryRun}];
      return;
    default:
      return;  // nothing to count
  }
}

void WorkCounts::collect(const MetricLabel& driver, std::vector<MetricFamily>& families) const {
  const auto add = [&](Metric metric, std::vector<MetricLabel> labels, double value) {
    labels.insert(labels.begin(), driver);
    families[metric].samples.push_back({std::move(labels), value});
  };
  for (const auto& [name, task] : tasks_.all()) {
    const MetricLabel named = label("task", name);
    for (std::size_t index = 0; index < taskOutcomes.size(); ++index) {
      add(taskRuns, {named, label("outcome", taskOutcomes[index])},
          static_cast<double>(task.outcomes[index]));
    }
    families[taskTimes].samples.push_back(task.runs.histogram({driver, named}));
    if (task.lastSuccess) add(taskLastSuccess, {named}, *task.lastSuccess);
    if (task.nextRun) add(taskNextRun, {named}, *task.nextRun);
  }
  for (const auto& [name, election] : elections_.all()) {
    add(leader, {label("election", name)}, election.leads ? 1.0 : 0.0);
    add(leaderTerms, {label("election", name)}, static_cast<double>(election.terms));
  }
  for (std::size_t index = 0; index < cacheResults.size(); ++index) {
    add(cacheReads, {label("result", cacheResults[index])}, static_cast<double>(cacheReads_[index]));
  }
  for (const auto& [name, migration] : migrations_.all()) {
    for (std::size_t index = 0; index < phases.size(); ++index) {
      add(migrationPhase, {label("migration", name), label("phase", toString(phases[index]))},
          migration.phases[index] ? 1.0 : 0.0);
    }
  }
  for (const auto& [name, route] : routes_.all()) {
    for (const auto& [refusal, count] : route.refusals) {
      add(httpRefusals,
          {label("route", name), label("status", std::to_string(refusal.first)),
           label("dry_run", refusal.second ? "true" : "false")},
          static_cast<double>(count));
    }
  }
}

}  // namespace lockkeeper::poco
