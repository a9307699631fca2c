#pragma once

#include <memory>
#include <string>

#include "lockkeeper/environment.h"
#include "lockkeeper/migration/export.h"
#include "lockkeeper/migration/migrating_driver.h"
#include "lockkeeper/store/shared_records.h"
#include "lockkeeper/store_registry.h"

/// Moves a live fleet from one lock store to another.
namespace lockkeeper::migration {

/// The stores of a migration, by URI. They may contain passwords: do not put them into messages.
struct MigrationStores {
  std::string from;        ///< The old store.
  std::string to;          ///< The new store.
  std::string stateStore;  ///< Keeps the migration's state (memory:, redis:); empty: the new store does.
};

/// Opens both stores and the one that keeps the state. Connects nowhere yet. Throws ConfigError when the two
/// URIs name the same store, when the state store cannot keep shared records, or for what
/// StoreRegistry::open() or MigrationOptions refuse.
LOCKKEEPER_MIGRATION_EXPORT std::shared_ptr<MigratingDriver> open(const StoreRegistry& registry,
                                                                  const MigrationStores& stores,
                                                                  const MigrationOptions& options = {},
                                                                  const Environment& environment = {});

/// Only the state store, for programs that look at a migration and take no locks.
LOCKKEEPER_MIGRATION_EXPORT std::shared_ptr<SharedRecords> openStateStore(
    const StoreRegistry& registry, const MigrationStores& stores, const Environment& environment = {});

}  // namespace lockkeeper::migration
