#include <array>
#include <functional>
#include <memory>
#include <string>

#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/migration/migrating_driver.h"
#include "lockkeeper/migration/state_store.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "redis_stores.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;
namespace {

using migration::Phase;

/// A migration that is complete: one phase for all keys. Each client is a process of its own to the
/// others.
DriverFactory migrating(const char* name, Phase phase, bool reportsLosses,
                        std::function<std::shared_ptr<LockDriver>(bool isNew)> store) {
  const auto open = [phase, store = std::move(store)]() -> std::shared_ptr<LockDriver> {
    const auto newStore = store(true);
    const auto records = capability<SharedRecords>(newStore);
    migration::MigrationOptions options;
    options.rules = migration::Rules(phase);
    options.maxTtl = std::chrono::hours{24};
    migration::StateStore stateStore(records, options.name);
    const Instant soon = systemClock()->now() + std::chrono::seconds{10};
    if (const auto state = stateStore.read(soon); state.version == 0) {
      stateStore.change(state, 1, options.rules, options.rules, soon);
    }
    return std::make_shared<migration::MigratingDriver>(store(false), newStore, records, options);
  };
  return {.name = name,
          .open = open,
          .fence = phase == Phase::legacy ? FencePromise::none : FencePromise::whileStoreKeepsWrites,
          .browsable = true,
          .reportsLosses = reportsLosses};
}

DriverFactory inMemory(const char* name, Phase phase) {
  return migrating(name, phase, true,
                   [stores = std::array{std::make_shared<MemoryDriver>(), std::make_shared<MemoryDriver>()}](
                       bool isNew) { return stores[isNew ? 1 : 0]; });
}

DriverFactory onRedis(const char* name, Phase phase) {
  using Server = std::unique_ptr<RedisServer>;
  return migrating(name, phase, false, [server = std::make_shared<Server>()](bool isNew) {
    if (!*server) *server = std::make_unique<RedisServer>();
    StoreRegistry registry;
    redis::use(registry);
    return registry.open("redis://" + addressOf(**server) + (isNew ? "/2" : "/1"));
  });
}

}  // namespace

std::vector<DriverFactory> migrationStores() {
  return {inMemory("MigrationLegacy", Phase::legacy), inMemory("MigrationBoth", Phase::both),
          inMemory("MigrationModern", Phase::modern), onRedis("MigrationRedisBoth", Phase::both)};
}

}  // namespace lockkeeper::test
