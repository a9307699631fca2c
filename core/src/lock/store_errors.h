#pragma once

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/error.h"

namespace lockkeeper::detail {

// What a driver's error says about the request that failed.

inline bool perhapsApplied(ErrorCode code) {
  return code == ErrorCode::outcomeUnknown || code == ErrorCode::protocol;
}

inline bool worthRetrying(ErrorCode code) {
  return code == ErrorCode::outcomeUnknown || code == ErrorCode::storeUnavailable;
}

// If so, the token must not be used for another claim.
inline bool isWithdrawn(const Error& error) {
  return dynamic_cast<const WithdrawalUnknown*>(&error) != nullptr;
}

}  // namespace lockkeeper::detail
