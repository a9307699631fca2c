#include "lockkeeper/error.h"

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
