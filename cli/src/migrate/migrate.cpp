#include "migrate/migrate.h"

#include "known_stores.h"
#include "lockkeeper/error.h"
#include "lockkeeper/migration/open.h"
#include "stores.h"

namespace lockkeeper::cli {

int migrate(const CommandLine& line) {
  if (line.operands.empty()) throw UsageError("migrate what? There are: audit, status, advance");
  CommandLine rest = line;
  rest.operands.erase(rest.operands.begin());
  const std::string& what = line.operands.front();
#ifdef LOCKKEEPER_WITH_REDIS
  if (what == "audit") return auditLegacyKeys(rest);
#endif
  if (what == "status") return showMigration(rest);
  if (what == "advance") return advanceMigration(rest);
  throw UsageError("no migrate " + lockkeeper::quoted(what) + "; there are: audit, status, advance");
}

ObservedMigration observe(const Settings& settings) {
  if (settings.migration.from.empty()) {
    throw ConfigError("there is no migration: the file of --config has no lockkeeper.migration.from");
  }
  const migration::MigrationStores stores{settings.migration.from, settings.store,
                                          settings.migration.stateStore};
  migration::StateStore stateStore(openStateStore(knownStores(), stores), settings.migration.options.name);
  migration::MigrationState state = stateStore.read(soon());
  return {settings.migration, std::move(stateStore), std::move(state)};
}

}  // namespace lockkeeper::cli
