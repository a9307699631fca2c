#include "metrics/metrics_listener.h"

#include <numeric>

#include "lockkeeper/error.h"
#include "metrics/metric_catalog.h"

namespace lockkeeper::poco {

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
  switch (event.kind) {
    case EventKind::acquired:
      ++acquisitions_[granted];
      waits_.add(event.duration());
      break;
    case EventKind::timedOut:
      ++acquisitions_[timeout];
      break;
    case EventKind::gaveUp:
      ++acquisitions_[event.error == ErrorCode::cancelled ? cancelled : failed];
      break;
    case EventKind::renewed:
      ++renewals_[success];
      break;
    case EventKind::renewalFailed:
      ++renewals_[failure];
      break;
    case EventKind::lost:
      ++losses_[static_cast<std::size_t>(event.loss)];
      break;
    case EventKind::released:
      holds_.add(event.duration());
      break;
    case EventKind::attemptFailed:
      ++storeErrors_[kindOf(event.error.value_or(ErrorCode::protocol))];
      break;
    case EventKind::decided: {
      const Decision& decision = *event.decision;
      const std::size_t index = (decision.outage ? 2U : 0U) + (decision.allowed ? 0U : 1U);
      ++policies_.of(decision.policy).decisions[index];
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
  const auto addEach = [&](Metric metric, std::string_view name, const auto& values, const auto& counts) {
    for (std::size_t index = 0; index < values.size(); ++index) {
      families[metric].samples.push_back(
          {{driver, label(name, values[index])}, static_cast<double>(counts[index])});
    }
  };
  addEach(acquisitions, "outcome", acquisitionOutcomes, acquisitions_);
  families[waits].samples.push_back(waits_.histogram({driver}));
  families[holds].samples.push_back(holds_.histogram({driver}));
  const Count ended = std::accumulate(losses_.begin(), losses_.end(), holds_.count());
  // An end may be told before its beginning, by another thread.
  const double held = ended < waits_.count() ? static_cast<double>(waits_.count() - ended) : 0.0;
  families[locksHeld].samples.push_back({{driver}, held});
  addEach(renewals, "outcome", renewalOutcomes, renewals_);
  addEach(losses, "reason", lossReasons, losses_);
  addEach(storeErrors, "kind", errorKinds, storeErrors_);
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
  }
}

}  // namespace lockkeeper::poco
