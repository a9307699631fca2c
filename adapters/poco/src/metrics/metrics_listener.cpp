#include "metrics/metrics_listener.h"

#include <utility>

#include "metrics/metric_catalog.h"
#include "metrics/printable.h"

namespace lockkeeper::poco {

using std::chrono::nanoseconds;

namespace {

// What is counted by each index of an array below: the label's value.
constexpr std::array acquisitionOutcomes{"granted", "timeout", "cancelled", "failed"};
constexpr std::array renewalOutcomes{"renewed", "failed"};
constexpr std::array lossReasons{"lease_ended", "not_owner", "ownership_uncertain", "max_hold"};
constexpr std::array errorKinds{"store_unavailable", "outcome_unknown", "deadlock",
                                "configuration",     "protocol",        "other"};
constexpr std::array nodeOutcomes{"agreed", "refused", "failed", "unanswered", "left_out"};
constexpr std::array decisionResults{"allowed", "refused"};
constexpr std::array deciders{"store", "outage"};

enum Acquisition : std::size_t { granted, timeout, cancelled, failed };
enum RenewalResult : std::size_t { success, failure };

std::size_t kindOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::storeUnavailable:
      return 0;
    case ErrorCode::outcomeUnknown:
      return 1;
    case ErrorCode::deadlock:
      return 2;
    case ErrorCode::config:
      return 3;
    case ErrorCode::protocol:
      return 4;
    default:
      return 5;
  }
}

/// host:port of what a driver calls a node, such as redis://host:port/0; a Unix socket's path. Drivers put no
/// credentials there: whatever would look like some is cut off all the same.
std::string_view addressOf(std::string_view node) {
  const auto scheme = node.find("://");
  if (scheme != node.npos) node.remove_prefix(scheme + 3);
  const auto credentials = node.rfind('@');
  if (credentials != node.npos) node.remove_prefix(credentials + 1);
  return node.starts_with('/') ? node : node.substr(0, node.find('/'));
}

MetricLabel label(std::string_view name, std::string_view value) { return {name, printable(value, 256)}; }

}  // namespace

void MetricsListener::acquired(std::string_view, nanoseconds waited, std::optional<Fence>) {
  LockCounts& counts = locks_.mine();
  counts.acquisitions[granted].add();
  counts.waits.add(waited);
}

void MetricsListener::timedOut(std::string_view, nanoseconds) { locks_.mine().acquisitions[timeout].add(); }

void MetricsListener::gaveUp(std::string_view, ErrorCode why, nanoseconds) {
  locks_.mine().acquisitions[why == ErrorCode::cancelled ? cancelled : failed].add();
}

void MetricsListener::renewed(std::string_view) { locks_.mine().renewals[success].add(); }

void MetricsListener::suspect(std::string_view, nanoseconds) { locks_.mine().renewals[failure].add(); }

void MetricsListener::lost(std::string_view, LossReason reason) {
  locks_.mine().losses[static_cast<std::size_t>(reason)].add();
}

void MetricsListener::released(std::string_view, nanoseconds held) { locks_.mine().holds.add(held); }

void MetricsListener::decided(std::string_view, const Decision& decision) {
  const std::size_t index = (decision.outage ? 2U : 0U) + (decision.allowed ? 0U : 1U);
  policies_.of(decision.policy).mine().decisions[index].add();
}

void MetricsListener::storeFailed(std::string_view, ErrorCode code, std::string_view) {
  locks_.mine().storeErrors[kindOf(code)].add();
}

void MetricsListener::nodeAsked(std::string_view name, NodeOutcome outcome, nanoseconds latency) {
  Node& node = nodes_.of(addressOf(name));
  NodeCounts& counts = node.counts.mine();
  counts.requests[static_cast<std::size_t>(outcome)].add();
  if (outcome == NodeOutcome::agreed || outcome == NodeOutcome::refused) {
    counts.answers.add(latency);
    node.up.store(true, std::memory_order_relaxed);
  } else if (outcome != NodeOutcome::unanswered) {  // the others were quicker: that says nothing of it
    node.up.store(false, std::memory_order_relaxed);
  }
}

void MetricsListener::collect(std::vector<MetricFamily>& families) const {
  collectLocks(families);
  collectNodes(families);
  collectPolicies(families);
}

void MetricsListener::collectLocks(std::vector<MetricFamily>& families) const {
  const MetricLabel driver = label("driver", driver_);
  const auto addEach = [&](Metric metric, std::string_view name, const auto& values, auto LockCounts::*part) {
    for (std::size_t index = 0; index < values.size(); ++index) {
      const auto count =
          locks_.sum([&](const LockCounts& counts) -> const Count& { return (counts.*part)[index]; });
      families[metric].samples.push_back({{driver, label(name, values[index])}, static_cast<double>(count)});
    }
  };
  const auto addHistogram = [&](Metric metric, Durations LockCounts::*part) -> double {
    const auto durations = [&](const LockCounts& counts) -> const Durations& { return counts.*part; };
    families[metric].samples.push_back(histogram(locks_, durations, {driver}));
    return static_cast<double>(families[metric].samples.back().buckets.back().count);
  };
  // What has ended is read before what has begun, so that nothing seems to have ended before it began.
  addEach(losses, "reason", lossReasons, &LockCounts::losses);
  double ended = addHistogram(holds, &LockCounts::holds);
  const auto& lossSamples = families[losses].samples;
  for (std::size_t index = 0; index < lossReasons.size(); ++index) {
    ended += lossSamples[lossSamples.size() - 1 - index].value;
  }
  const double begun = addHistogram(waits, &LockCounts::waits);
  families[locksHeld].samples.push_back({{driver}, std::max(begun - ended, 0.0)});
  addEach(acquisitions, "outcome", acquisitionOutcomes, &LockCounts::acquisitions);
  addEach(renewals, "outcome", renewalOutcomes, &LockCounts::renewals);
  addEach(storeErrors, "kind", errorKinds, &LockCounts::storeErrors);
}

void MetricsListener::collectNodes(std::vector<MetricFamily>& families) const {
  nodes_.forEach([&](std::string_view name, const Node& node) {
    const std::vector<MetricLabel> labels{label("driver", driver_), label("node", name)};
    for (std::size_t index = 0; index < nodeOutcomes.size(); ++index) {
      const auto count =
          node.counts.sum([&](const NodeCounts& counts) -> const Count& { return counts.requests[index]; });
      auto& sample =
          families[nodeRequests].samples.emplace_back(MetricSample{labels, static_cast<double>(count)});
      sample.labels.push_back(label("outcome", nodeOutcomes[index]));
    }
    families[nodeUp].samples.push_back({labels, node.up.load(std::memory_order_relaxed) ? 1.0 : 0.0});
    families[nodeAnswers].samples.push_back(histogram(
        node.counts, [](const NodeCounts& counts) -> const Durations& { return counts.answers; }, labels));
  });
}

void MetricsListener::collectPolicies(std::vector<MetricFamily>& families) const {
  policies_.forEach([&](std::string_view policy, const Sharded<PolicyCounts>& shards) {
    for (std::size_t index = 0; index < 4; ++index) {
      const auto count =
          shards.sum([&](const PolicyCounts& counts) -> const Count& { return counts.decisions[index]; });
      families[rateDecisions].samples.push_back(
          {{label("driver", driver_), label("policy", policy), label("result", decisionResults[index % 2]),
            label("decided_by", deciders[index / 2])},
           static_cast<double>(count)});
    }
  });
}

}  // namespace lockkeeper::poco
