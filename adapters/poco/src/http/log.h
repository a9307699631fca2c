#pragma once

#include <string>

#include "lockkeeper/poco/idempotency.h"
#include "lockkeeper/poco/rate_limit_filter.h"
#include "lockkeeper/poco/request_locks.h"

namespace lockkeeper::poco {

// What filters report to an application that has no hook for it goes to Poco::Logger "lockkeeper.http": what
// takes a person as a warning, of which there are few of one kind (text/log_throttle.h), what clients did as
// debug.

void log(const RateLimitReport& report);
void log(const RequestLockReport& report);
void log(const IdempotencyReport& report);

}  // namespace lockkeeper::poco
