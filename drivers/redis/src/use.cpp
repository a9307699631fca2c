#include "lockkeeper/redis/use.h"

#include <memory>

#include "lockkeeper/redis/redis_driver.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::redis {

void use(StoreRegistry& registry) {
  const auto open = [](const StoreUri& uri, const Environment& environment) -> std::shared_ptr<LockDriver> {
    return std::make_shared<RedisDriver>(RedisOptions::fromUri(uri), environment);
  };
  for (const char* const scheme : {"redis", "rediss", "redis+unix"}) registry.add(scheme, open);
}

}  // namespace lockkeeper::redis
