#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <optional>
#include <string>

#include "lockkeeper/migration/migration_options.h"

namespace lockkeeper::cli {

/// What a configuration file says in lockkeeper.migration.*; the new store is lockkeeper.store.
struct MigrationSettings {
  std::string from;   ///< May hold a password: not for messages.
  std::string board;  ///< Likewise; empty: the new store.
  migration::MigrationOptions options;
};

/// Empty when there is no lockkeeper.migration.from. Throws ConfigError.
std::optional<MigrationSettings> readMigration(const Poco::Util::AbstractConfiguration& file);

}  // namespace lockkeeper::cli
