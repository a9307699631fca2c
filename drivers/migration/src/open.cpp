#include "lockkeeper/migration/open.h"

#include "lockkeeper/error.h"

namespace lockkeeper::migration {

namespace {

std::shared_ptr<SharedRecords> boardOf(const std::shared_ptr<LockDriver>& driver, const std::string& uri) {
  if (auto board = capability<SharedRecords>(driver)) return board;
  throw ConfigError("the store " + StoreUri::parse(uri).display() +
                    " keeps no board: name one that does, such as redis://…, in migration.board");
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
  auto board = stores.board.empty() ? boardOf(newStore, stores.to) : openBoard(registry, stores, environment);
  return std::make_shared<MigratingDriver>(registry.open(stores.from, environment), std::move(newStore),
                                           std::move(board), options, environment);
}

std::shared_ptr<SharedRecords> openBoard(const StoreRegistry& registry, const MigrationStores& stores,
                                         const Environment& environment) {
  const std::string& uri = stores.board.empty() ? stores.to : stores.board;
  return boardOf(registry.open(uri, environment), uri);
}

}  // namespace lockkeeper::migration
