#pragma once

#include <chrono>
#include <string>

#include "command_line.h"
#include "lockkeeper/migration/state_store.h"
#include "command_settings.h"

namespace lockkeeper::cli {

/// `lockkeeper migrate status`: prints members, phases, versions, and what blocks the next step. Reads only.
int showMigration(const CommandLine& line);

/// `lockkeeper migrate advance RULE`: writes a rule for all members, after checking it.
int advanceMigration(const CommandLine& line);

/// A migration, for those who look at it and take no locks.
struct ObservedMigration {
  poco::MigrationSettings settings;
  migration::StateStore stateStore;
  migration::MigrationState state;
};

/// Reads the state of the migration that the settings name. Throws ConfigError when they name none.
ObservedMigration observe(const Settings& settings);

}  // namespace lockkeeper::cli
