#pragma once

#include "lockkeeper/redis/export.h"

namespace lockkeeper {
class StoreRegistry;
}

/// Locks, limits and values on Redis.
namespace lockkeeper::redis {

/// Adds the schemes `redis`, `rediss` (TLS), `redis+unix`, `redis+sentinel`, `redis+cluster`, `redis+legacy`
/// and `redlock` to `registry`.
LOCKKEEPER_REDIS_EXPORT void use(StoreRegistry& registry);

}  // namespace lockkeeper::redis
