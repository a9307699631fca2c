#include "migrate/observed_migration.h"

#include <iostream>

#include "commands.h"
#include "lockkeeper/error.h"
#include "lockkeeper/migration/open.h"
#include "shown.h"

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
    if (blocker.left)
      std::cout << " (for " << shownLength(*blocker.left + std::chrono::milliseconds{999}) << ")";
    std::cout << "\n";
  }
}

}  // namespace lockkeeper::cli
