#include "stores.h"

#include "lockkeeper/migration/open.h"

#ifdef LOCKKEEPER_WITH_ETCD
#include "lockkeeper/etcd/use.h"
#endif
#ifdef LOCKKEEPER_WITH_REDIS
#include "lockkeeper/redis/use.h"
#endif
#ifdef LOCKKEEPER_WITH_MYSQL
#include "lockkeeper/mysql/use.h"
#endif

namespace lockkeeper::cli {

StoreRegistry knownStores() {
  StoreRegistry registry;
#ifdef LOCKKEEPER_WITH_REDIS
  redis::use(registry);
#endif
#ifdef LOCKKEEPER_WITH_MYSQL
  mysql::use(registry);
#endif
#ifdef LOCKKEEPER_WITH_ETCD
  etcd::use(registry);
#endif
  return registry;
}

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
