#pragma once

#include "command_settings.h"
#include "lockkeeper/migration/state_store.h"

namespace lockkeeper::cli {

/// `lockkeeper migrate WORD …`: does what the first operand says.
int migrate(const CommandLine& line);

/// `lockkeeper migrate audit [PREFIX]`: prints the class of each key of a legacy fleet. Reads only.
int auditLegacyKeys(const CommandLine& line);

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
