#include "lockkeeper/migration/open.h"

#include "lockkeeper/error.h"

namespace lockkeeper::migration {

namespace {

std::shared_ptr<SharedRecords> recordsOf(const std::shared_ptr<LockDriver>& driver, const std::string& uri) {
  if (auto records = capability<SharedRecords>(driver)) return records;
  throw ConfigError(
      "the store " + StoreUri::parse(uri).display() +
      " cannot keep a migration's state: name one that can, such as redis://…, in migration.stateStore");
}

void refuseSame(const MigrationStores& stores) {
  // Prefixes and the like are parameters, so the same address may be two stores. Those that are one in truth
  // are found with the first lock in both.
  const StoreUri from = StoreUri::parse(stores.from);
  const StoreUri to = StoreUri::parse(stores.to);
  if (from.scheme() != to.scheme() || from.scheme() == "memory") return;
  if (from.display() == to.display() && from.parameter("db") == to.parameter("db")) {
    throw ConfigError("the migration's old and new store are both " + from.display() + ": they must be two");
  }
}

}  // namespace

std::shared_ptr<MigratingDriver> open(const StoreRegistry& registry, const MigrationStores& stores,
                                      const MigrationOptions& options, const Environment& environment) {
  refuseSame(stores);
  auto newStore = registry.open(stores.to, environment);
  auto records = stores.stateStore.empty() ? recordsOf(newStore, stores.to)
                                           : openStateStore(registry, stores, environment);
  return std::make_shared<MigratingDriver>(registry.open(stores.from, environment), std::move(newStore),
                                           std::move(records), options, environment);
}

std::shared_ptr<SharedRecords> openStateStore(const StoreRegistry& registry, const MigrationStores& stores,
                                              const Environment& environment) {
  const std::string& uri = stores.stateStore.empty() ? stores.to : stores.stateStore;
  return recordsOf(registry.open(uri, environment), uri);
}

}  // namespace lockkeeper::migration
