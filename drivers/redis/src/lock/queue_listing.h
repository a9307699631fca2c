#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockkeeper/driver/inspection.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

/// As WaiterBrowsable::waiters().
std::vector<std::vector<Waiter>> waitersOf(RedisStore& store, std::span<const std::string> keys,
                                           Instant deadline);

}  // namespace lockkeeper::redis
