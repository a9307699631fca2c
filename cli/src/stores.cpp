#include "stores.h"

#include "known_stores.h"
#include "lockkeeper/migration/open.h"

namespace lockkeeper::cli {

std::shared_ptr<LockDriver> openStore(const Settings& settings) {
  const StoreRegistry registry = knownStores();
  const poco::MigrationSettings& migration = settings.migration;
  if (migration.from.empty()) return registry.open(settings.store);
  return migration::open(registry, {migration.from, settings.store, migration.stateStore}, migration.options);
}

std::shared_ptr<RateDriver> openRates(const Settings& settings) {
  return knownStores().openRates(settings.limiterStore.empty() ? settings.store : settings.limiterStore);
}

}  // namespace lockkeeper::cli
