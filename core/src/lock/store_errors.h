#pragma once

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/error.h"

namespace lockkeeper::detail {

// What an error of a driver says about the request that it ends.

inline bool perhapsApplied(ErrorCode code) {
  return code == ErrorCode::outcomeUnknown || code == ErrorCode::protocol;
}

inline bool worthRetrying(ErrorCode code) {
  return code == ErrorCode::outcomeUnknown || code == ErrorCode::storeUnavailable;
}

// Then the token serves no other claim.
inline bool isWithdrawn(const Error& error) {
  return dynamic_cast<const WithdrawalUnknown*>(&error) != nullptr;
}

}  // namespace lockkeeper::detail
