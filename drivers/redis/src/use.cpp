#include "lockkeeper/redis/use.h"

#include <memory>

#include "lockkeeper/redis/cluster_options.h"
#include "lockkeeper/redis/legacy_driver.h"
#include "lockkeeper/redis/legacy_options.h"
#include "lockkeeper/redis/redis_driver.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/redis/redlock_driver.h"
#include "lockkeeper/redis/redlock_options.h"
#include "lockkeeper/redis/value_store.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::redis {

void use(StoreRegistry& registry) {
  const auto open = [](const StoreUri& uri, const Environment& environment) -> std::shared_ptr<LockDriver> {
    return std::make_shared<RedisDriver>(RedisOptions::fromUri(uri), environment);
  };
  const auto openValues = [](const StoreUri& uri,
                             const Environment& environment) -> std::shared_ptr<ValueStore> {
    return std::make_shared<RedisValues>(RedisOptions::fromUri(uri), environment);
  };
  for (const char* const scheme : {"redis", "rediss", "redis+unix", "redis+sentinel"}) {
    registry.add(scheme, open);
    registry.addValues(scheme, openValues);
  }

  registry.add("redis+cluster",
               [](const StoreUri& uri, const Environment& environment) -> std::shared_ptr<LockDriver> {
                 return std::make_shared<RedisDriver>(ClusterOptions::fromUri(uri), environment);
               });
  registry.addValues("redis+cluster",
                     [](const StoreUri& uri, const Environment& environment) -> std::shared_ptr<ValueStore> {
                       return std::make_shared<RedisValues>(ClusterOptions::fromUri(uri), environment);
                     });

  registry.addComposition("redlock",
                          [](const StoreUri& uri, const Environment& environment,
                             const StoreRegistry& parts) -> std::shared_ptr<LockDriver> {
                            RedlockOptions options = RedlockOptions::fromUri(uri);
                            const auto fenceStore = uri.parameter("fenceStore");
                            return std::make_shared<RedlockDriver>(
                                std::move(options), environment,
                                fenceStore ? parts.openFences(*fenceStore, environment) : nullptr);
                          });

  registry.add("redis+legacy",
               [](const StoreUri& uri, const Environment& environment) -> std::shared_ptr<LockDriver> {
                 return std::make_shared<LegacyRedisDriver>(LegacyOptions::fromUri(uri), environment);
               });
}

}  // namespace lockkeeper::redis
