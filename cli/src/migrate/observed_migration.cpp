#include "migrate/observed_migration.h"

#include <iostream>

#include "commands.h"
#include "lockkeeper/error.h"
#include "lockkeeper/migration/open.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::seconds lookBound{5};

}  // namespace

ObservedMigration observe(const Settings& settings) {
  if (settings.migration.from.empty()) {
    throw ConfigError("there is no migration: the file of --config has no lockkeeper.migration.from");
  }
  const migration::MigrationStores stores{settings.migration.from, settings.store,
                                          settings.migration.stateStore};
  migration::StateStore stateStore(openStateStore(knownStores(), stores), settings.migration.options.name);
  migration::MigrationState state = stateStore.read(saturatingAdd(systemClock()->now(), lookBound));
  return {settings.migration, std::move(stateStore), std::move(state)};
}

std::string rough(std::chrono::milliseconds length) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(length).count();
  const auto two = [](auto large, const char* largeUnit, auto small, const char* smallUnit) {
    return std::to_string(large) + largeUnit + (small > 0 ? " " + std::to_string(small) + smallUnit : "");
  };
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return two(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 86400) return two(seconds / 3600, "h", seconds % 3600 / 60, "m");
  return two(seconds / 86400, "d", seconds % 86400 / 3600, "h");
}

void printBlockers(const migration::MigrationState& state, const migration::Rules& target,
                   std::chrono::milliseconds observation) {
  const auto blockers = blockersOf(state, target, observation);
  if (blockers.empty()) {
    std::cout << "next step: nothing blocks it; the next heartbeat takes it\n";
    return;
  }
  std::cout << "next step: blocked\n";
  for (const migration::Blocker& blocker : blockers) {
    std::cout << "  - " << oneLine(blocker.what);
    if (blocker.left) std::cout << " (for " << rough(*blocker.left + std::chrono::milliseconds{999}) << ")";
    std::cout << "\n";
  }
}

}  // namespace lockkeeper::cli
