#pragma once

#include "lockkeeper/listener.h"

namespace lockkeeper::poco {

/// Calls each hook of `listener` that there is, with each value that an enumeration can have.
inline void tellEverything(Listener& listener) {
  using namespace std::chrono_literals;
  listener.acquired("order", 3ms, 7);
  listener.timedOut("order", 2s);
  listener.gaveUp("order", ErrorCode::cancelled, 1s);
  listener.gaveUp("order", ErrorCode::storeUnavailable, 1s);
  listener.renewed("order");
  listener.suspect("order", 9s);
  for (const auto reason :
       {LossReason::leaseEnded, LossReason::notOwner, LossReason::ownershipUncertain, LossReason::maxHold}) {
    listener.lost("order", reason);
  }
  listener.released("order", 40s);
  for (const bool allowed : {true, false}) {
    listener.decided("+49", {.allowed = allowed, .policy = "sms", .outage = {}});
    listener.decided("+49", {.allowed = allowed, .policy = "sms", .outage = ErrorCode::storeUnavailable});
  }
  listener.refused("+49", "sms", 500ms);
  for (int code = 0; code <= static_cast<int>(ErrorCode::forked); ++code) {
    listener.storeFailed("order", static_cast<ErrorCode>(code), "no answer");
  }
  for (const auto outcome : {NodeOutcome::failed, NodeOutcome::unanswered, NodeOutcome::leftOut,
                             NodeOutcome::refused, NodeOutcome::agreed}) {
    listener.nodeAsked("redis://10.0.0.1:6379/0", outcome, 1ms);
  }
  listener.noted("redis://10.0.0.1:6379/0", "evicts keys");
}

}  // namespace lockkeeper::poco
