#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "lockkeeper/listener.h"

namespace lockkeeper::poco {

/// Tells a listener of events, each with what it carries.
class Teller {
 public:
  using Time = std::chrono::nanoseconds;

  explicit Teller(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}

  void acquired(std::string_view key, Time waited, std::optional<Fence> fence) const {
    Event event = of(EventKind::acquired, key, waited);
    event.fence = fence;
    listener_->on(event);
  }
  void timedOut(std::string_view key, Time waited) const {
    listener_->on(of(EventKind::timedOut, key, waited));
  }
  void gaveUp(std::string_view key, ErrorCode why, Time waited) const {
    Event event = of(EventKind::gaveUp, key, waited);
    event.error = why;
    listener_->on(event);
  }
  void renewed(std::string_view key) const { listener_->on(of(EventKind::renewed, key)); }
  void renewalFailed(std::string_view key, ErrorCode code, std::string_view cause, Time remaining) const {
    Event event = of(EventKind::renewalFailed, key);
    event.error = code;
    event.text = cause;
    event.remaining = remaining;
    listener_->on(event);
  }
  void lost(std::string_view key, LossReason reason) const {
    Event event = of(EventKind::lost, key);
    event.loss = reason;
    listener_->on(event);
  }
  void released(std::string_view key, Time held) const { listener_->on(of(EventKind::released, key, held)); }
  void decided(std::string_view key, const Decision& decision, std::optional<Time> wait = {}) const {
    Event event = of(EventKind::decided, key);
    event.decision = &decision;
    event.wait = wait;
    listener_->on(event);
  }
  void attemptFailed(std::string_view key, ErrorCode code, std::string_view message) const {
    Event event = of(EventKind::attemptFailed, key);
    event.error = code;
    event.text = message;
    listener_->on(event);
  }
  void nodeAsked(std::string_view node, NodeOutcome outcome, Time latency) const {
    Event event = of(EventKind::nodeAsked, {}, latency);
    event.store = node;
    event.node = outcome;
    listener_->on(event);
  }
  void noted(std::string_view store, std::string_view message) const {
    listener_->on({.kind = EventKind::noted, .store = store, .text = message});
  }
  void taskEnded(std::string_view name, TaskOutcome outcome, std::string_view text, Time took) const {
    Event event = of(EventKind::taskEnded, name, took);
    event.task = outcome;
    event.text = text;
    listener_->on(event);
  }
  void taskPlanned(std::string_view name, Time until) const {
    Event event = of(EventKind::taskPlanned, name);
    event.remaining = until;
    listener_->on(event);
  }
  void requestRefused(std::string_view route, int status, bool dryRun = false) const {
    Event event = of(EventKind::requestRefused, route);
    event.status = status;
    event.dryRun = dryRun;
    listener_->on(event);
  }
  void other(EventKind kind, std::string_view key, std::string_view text) const {
    listener_->on({.kind = kind, .key = key, .text = text});
  }

  /// Events of every kind, with each value that an enumeration can have.
  void everything() const {
    using namespace std::chrono_literals;
    acquired("order", 3ms, 7);
    timedOut("order", 2s);
    gaveUp("order", ErrorCode::cancelled, 1s);
    gaveUp("order", ErrorCode::storeUnavailable, 1s);
    renewed("order");
    renewalFailed("order", ErrorCode::storeUnavailable, "no answer", 9s);
    for (const auto reason : {LossReason::leaseEnded, LossReason::notOwner, LossReason::ownershipUncertain,
                              LossReason::maxHold}) {
      lost("order", reason);
    }
    released("order", 40s);
    for (const bool allowed : {true, false}) {
      decided("+49", {.allowed = allowed, .policy = "sms", .outage = {}});
      decided("+49", {.allowed = allowed, .policy = "sms", .outage = ErrorCode::storeUnavailable});
    }
    for (int code = 0; code <= static_cast<int>(ErrorCode::forked); ++code) {
      attemptFailed("order", static_cast<ErrorCode>(code), "no answer");
    }
    for (const auto outcome : {NodeOutcome::failed, NodeOutcome::unanswered, NodeOutcome::leftOut,
                               NodeOutcome::refused, NodeOutcome::agreed}) {
      nodeAsked("redis://10.0.0.1:6379/0", outcome, 1ms);
    }
    noted("redis://10.0.0.1:6379/0", "evicts keys");
    for (int outcome = 0; outcome <= static_cast<int>(TaskOutcome::missed); ++outcome) {
      taskEnded("report", static_cast<TaskOutcome>(outcome), "", 1s);
    }
    for (int kind = static_cast<int>(EventKind::cacheHit); kind <= static_cast<int>(EventKind::notStored);
         ++kind) {
      other(static_cast<EventKind>(kind), "order", "no answer");
    }
    taskPlanned("report", 1h);
    other(EventKind::scheduleEnded, "ended", "");
    other(EventKind::termBegan, "chief", "");
    other(EventKind::termEnded, "chief", "");
    other(EventKind::phaseChanged, "shop", "new:* = modern, * = both");
    for (const int status : {409, 422, 423, 429, 503}) {
      requestRefused("buy", status);
      requestRefused("buy", status, true);
    }
    other(EventKind::callbackFailed, "order", "no disk");
    other(EventKind::callbackLate, "order", "still runs");
  }

 private:
  static Event of(EventKind kind, std::string_view key, Time duration = {}) {
    return {.kind = kind, .key = key, .ended = Instant{} + duration};
  }

  const std::shared_ptr<Listener> listener_;
};

}  // namespace lockkeeper::poco
