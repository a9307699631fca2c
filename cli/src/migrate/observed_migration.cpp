#include "migrate/observed_migration.h"

#include "command_settings.h"
#include "lockkeeper/error.h"
#include "lockkeeper/migration/open.h"
#include "stores.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::seconds readBound{5};

}  // namespace

ObservedMigration observe(const Settings& settings) {
  if (settings.migration.from.empty()) {
    throw ConfigError("there is no migration: the file of --config has no lockkeeper.migration.from");
  }
  const migration::MigrationStores stores{settings.migration.from, settings.store,
                                          settings.migration.stateStore};
  migration::StateStore stateStore(openStateStore(knownStores(), stores), settings.migration.options.name);
  migration::MigrationState state = stateStore.read(saturatingAdd(systemClock()->now(), readBound));
  return {settings.migration, std::move(stateStore), std::move(state)};
}

}  // namespace lockkeeper::cli
