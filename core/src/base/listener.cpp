#include "lockkeeper/listener.h"

#include <stdexcept>
#include <utility>

#include "lockkeeper/environment.h"
#include "lockkeeper/trace/trace_scope.h"

namespace lockkeeper {

const char* toString(LossReason reason) noexcept {
  switch (reason) {
    case LossReason::leaseEnded:
      return "lease ended";
    case LossReason::notOwner:
      return "not the owner any more";
    case LossReason::ownershipUncertain:
      return "ownership uncertain (legacy client)";
    case LossReason::maxHold:
      return "maximum hold time reached";
  }
  return "unknown";
}

const char* toString(NodeOutcome outcome) noexcept {
  switch (outcome) {
    case NodeOutcome::agreed:
      return "agreed";
    case NodeOutcome::refused:
      return "refused";
    case NodeOutcome::failed:
      return "failed";
    case NodeOutcome::unanswered:
      return "unanswered";
    case NodeOutcome::leftOut:
      return "left out";
  }
  return "unknown";
}

const char* toString(TaskOutcome outcome) noexcept {
  switch (outcome) {
    case TaskOutcome::done:
      return "done";
    case TaskOutcome::lost:
      return "lock lost";
    case TaskOutcome::threw:
      return "threw";
    case TaskOutcome::skipped:
      return "skipped";
    case TaskOutcome::stopped:
      return "stopped";
    case TaskOutcome::storeFailed:
      return "store failed";
    case TaskOutcome::missed:
      return "missed";
  }
  return "unknown";
}

const char* toString(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::acquired:
      return "acquired";
    case EventKind::timedOut:
      return "timed out";
    case EventKind::gaveUp:
      return "gave up";
    case EventKind::renewed:
      return "renewed";
    case EventKind::renewalFailed:
      return "renewal failed";
    case EventKind::lost:
      return "lost";
    case EventKind::released:
      return "released";
    case EventKind::decided:
      return "decided";
    case EventKind::attemptFailed:
      return "attempt failed";
    case EventKind::nodeAsked:
      return "node asked";
    case EventKind::noted:
      return "noted";
    case EventKind::callbackFailed:
      return "callback failed";
    case EventKind::callbackLate:
      return "callback late";
    case EventKind::taskEnded:
      return "task ended";
    case EventKind::cacheHit:
      return "cache hit";
    case EventKind::cacheStale:
      return "stale value served";
    case EventKind::cacheLoaded:
      return "loaded";
    case EventKind::loadFailed:
      return "load failed";
    case EventKind::notStored:
      return "not stored";
    case EventKind::termBegan:
      return "term began";
    case EventKind::termEnded:
      return "term ended";
    case EventKind::taskPlanned:
      return "task planned";
    case EventKind::scheduleEnded:
      return "schedule ended";
    case EventKind::phaseChanged:
      return "phase changed";
    case EventKind::requestRefused:
      return "request refused";
  }
  return "unknown";
}

void Environment::tell(const Event& event) const noexcept {
  if (!listener) return;
  try {
    const std::string_view trace = TraceScope::current();
    if (trace.empty() || !event.trace.empty()) return listener->on(event);
    Event traced = event;
    traced.trace = trace;
    listener->on(traced);
  } catch (...) {
    // The listener's own affair: a broken metric must not break a lock.
  }
}

ListenerGroup::ListenerGroup(std::vector<std::shared_ptr<Listener>> members) : members_(std::move(members)) {
  for (const auto& each : members_) {
    if (each == nullptr) throw std::invalid_argument("a ListenerGroup has a listener that is null");
  }
}

void ListenerGroup::on(const Event& event) {
  for (const auto& each : members_) {
    try {
      each->on(event);
    } catch (...) {
      // Keeps nothing from the others.
    }
  }
}

}  // namespace lockkeeper
