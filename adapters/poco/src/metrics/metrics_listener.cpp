#include "metrics/metrics_listener.h"

#include <numeric>

#include "lockkeeper/error.h"
#include "metrics/metric_catalog.h"

namespace lockkeeper::poco {

namespace {

// What is counted by each index of an array below: the label's value.
constexpr std::array lockKinds{"mutex", "shared", "semaphore"};
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

/// Who reads and writes a key shares the largest limit.
std::size_t kindOf(const std::optional<Share>& share) {
  if (!share) return 0;
  return share->limit == Share::most ? 1 : 2;
}

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

}  // namespace

void MetricsListener::count(Node& node, const Event& event) {
  ++node.requests[static_cast<std::size_t>(event.node)];
  if (event.node == NodeOutcome::agreed || event.node == NodeOutcome::refused) {
    node.answers.add(event.duration());
    node.up = true;
  } else if (event.node != NodeOutcome::unanswered) {  // the others were quicker: that says nothing of it
    node.up = false;
  }
}

void MetricsListener::on(const Event& event) {
  const std::lock_guard guard(mutex_);
  Locks& locks = locks_[kindOf(event.share)];
  switch (event.kind) {
    case EventKind::acquired:
      ++locks.acquisitions[granted];
      locks.waits.add(event.duration());
      break;
    case EventKind::timedOut:
      ++locks.acquisitions[timeout];
      break;
    case EventKind::gaveUp:
      ++locks.acquisitions[event.error == ErrorCode::cancelled ? cancelled : failed];
      break;
    case EventKind::renewed:
      ++locks.renewals[success];
      break;
    case EventKind::renewalFailed:
      ++locks.renewals[failure];
      break;
    case EventKind::lost:
      ++locks.losses[static_cast<std::size_t>(event.loss)];
      break;
    case EventKind::released:
      locks.holds.add(event.duration());
      break;
    case EventKind::attemptFailed:
      storeErrors_[kindOf(event.error.value_or(ErrorCode::protocol))] += 1 + event.leftOut;
      break;
    case EventKind::decided: {
      const Decision& decision = *event.decision;
      const std::size_t index = (decision.outage ? 2U : 0U) + (decision.allowed ? 0U : 1U);
      Policy& policy = policies_.of(decision.policy);
      ++policy.decisions[index];
      if (event.wait) policy.waits.add(*event.wait);
      break;
    }
    case EventKind::nodeAsked:
      count(nodes_.of(addressOf(event.store)), event);
      break;
    default:
      work_.on(event);
  }
}

void MetricsListener::collect(std::vector<MetricFamily>& families) const {
  const std::lock_guard guard(mutex_);
  collectLocks(families);
  collectNodes(families);
  collectPolicies(families);
  work_.collect(label("driver", driver_), families);
}

void MetricsListener::collectLocks(std::vector<MetricFamily>& families) const {
  const MetricLabel driver = label("driver", driver_);
  const auto addEach = [&](Metric metric, const std::vector<MetricLabel>& labels, std::string_view name,
                           const auto& values, const auto& counts) {
    for (std::size_t index = 0; index < values.size(); ++index) {
      auto& sample =
          families[metric].samples.emplace_back(MetricSample{labels, static_cast<double>(counts[index])});
      sample.labels.push_back(label(name, values[index]));
    }
  };
  for (std::size_t kind = 0; kind < lockKinds.size(); ++kind) {
    const Locks& locks = locks_[kind];
    const std::vector<MetricLabel> labels{driver, label("lock", lockKinds[kind])};
    addEach(acquisitions, labels, "outcome", acquisitionOutcomes, locks.acquisitions);
    families[waits].samples.push_back(locks.waits.histogram(labels));
    families[holds].samples.push_back(locks.holds.histogram(labels));
    const Count ended = std::accumulate(locks.losses.begin(), locks.losses.end(), locks.holds.count());
    const Count began = locks.waits.count();
    // An end may be told before its beginning, by another thread.
    families[locksHeld].samples.push_back({labels, ended < began ? static_cast<double>(began - ended) : 0.0});
    addEach(renewals, labels, "outcome", renewalOutcomes, locks.renewals);
    addEach(losses, labels, "reason", lossReasons, locks.losses);
  }
  addEach(storeErrors, {driver}, "kind", errorKinds, storeErrors_);
}

void MetricsListener::collectNodes(std::vector<MetricFamily>& families) const {
  for (const auto& [name, node] : nodes_.all()) {
    const std::vector<MetricLabel> labels{label("driver", driver_), label("node", name)};
    for (std::size_t index = 0; index < nodeOutcomes.size(); ++index) {
      auto& sample = families[nodeRequests].samples.emplace_back(
          MetricSample{labels, static_cast<double>(node.requests[index])});
      sample.labels.push_back(label("outcome", nodeOutcomes[index]));
    }
    families[nodeUp].samples.push_back({labels, node.up ? 1.0 : 0.0});
    families[nodeAnswers].samples.push_back(node.answers.histogram(labels));
  }
}

void MetricsListener::collectPolicies(std::vector<MetricFamily>& families) const {
  for (const auto& [name, policy] : policies_.all()) {
    for (std::size_t index = 0; index < policy.decisions.size(); ++index) {
      families[rateDecisions].samples.push_back(
          {{label("driver", driver_), label("policy", name), label("result", decisionResults[index % 2]),
            label("decided_by", deciders[index / 2])},
           static_cast<double>(policy.decisions[index])});
    }
    families[rateWaits].samples.push_back(
        policy.waits.histogram({label("driver", driver_), label("policy", name)}));
  }
}

}  // namespace lockkeeper::poco
