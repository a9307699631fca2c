#include "lockkeeper/error.h"

#include "lockkeeper/listener.h"
#include "lockkeeper/lock.h"

namespace lockkeeper {

const char* toString(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::storeUnavailable:
      return "store unavailable";
    case ErrorCode::outcomeUnknown:
      return "outcome unknown";
    case ErrorCode::lockTimeout:
      return "lock timeout";
    case ErrorCode::lockLost:
      return "lock lost";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::deadlock:
      return "deadlock";
    case ErrorCode::config:
      return "configuration";
    case ErrorCode::protocol:
      return "protocol";
    case ErrorCode::forked:
      return "forked";
  }
  return "unknown";
}

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

const char* toString(ReleaseResult result) noexcept {
  switch (result) {
    case ReleaseResult::released:
      return "released";
    case ReleaseResult::notOwner:
      return "not the owner any more";
    case ReleaseResult::unavailable:
      return "store unavailable";
    case ReleaseResult::unknown:
      return "outcome unknown";
    case ReleaseResult::notHeld:
      return "not held";
  }
  return "unknown";
}

}  // namespace lockkeeper
