#pragma once

#include <array>
#include <chrono>

#include "lockkeeper/migration/migration_options.h"

namespace lockkeeper::test {

inline constexpr std::chrono::milliseconds fleetTtl{2000};

/// Several, because legacy clients ask so often that ours would hardly get at a single one.
inline constexpr std::array fleetKeys = {"order:1", "order:2", "order:3", "order:4",
                                         "stock:1", "stock:2", "stock:3", "stock:4"};

/// Short, so that tests see whole migrations; the same as in the configuration of MigrationTest.
inline migration::MigrationOptions migrationTiming() {
  migration::MigrationOptions options;
  options.heartbeat = std::chrono::milliseconds{200};
  options.lease = std::chrono::milliseconds{1500};
  options.maxTtl = fleetTtl;
  options.observation = std::chrono::milliseconds{1000};
  return options;
}

}  // namespace lockkeeper::test
