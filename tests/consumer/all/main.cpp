#include <lockkeeper/etcd/use.h>
#include <lockkeeper/inventory/stock_service.h>
#include <lockkeeper/memory/memory_driver.h>
#include <lockkeeper/migration/open.h>
#include <lockkeeper/mysql/use.h>
#include <lockkeeper/postgres/use.h>
#include <lockkeeper/redis/use.h>
#include <lockkeeper/rows/versioned_row.h>
#include <lockkeeper/store_registry.h>
#include <lockkeeper/testing/fake_clock.h>

#include <filesystem>
#include <iostream>

int main() {
  lockkeeper::StoreRegistry stores;
  lockkeeper::redis::use(stores);
  lockkeeper::mysql::use(stores);
  lockkeeper::postgres::use(stores);
  lockkeeper::etcd::use(stores);
  const lockkeeper::VersionedRow accounts({.name = "accounts", .key = "iban", .columns = {"balance"}});
  lockkeeper::Environment environment;
  environment.clock = std::make_shared<lockkeeper::testing::FakeClock>();
  const lockkeeper::migration::MigrationStores fromTo{.from = "memory:", .to = "memory:", .stateStore = ""};
  lockkeeper::migration::MigrationOptions moving;
  moving.rules = lockkeeper::migration::Rules(lockkeeper::migration::Phase::both);
  lockkeeper::LockManager locks(lockkeeper::migration::open(stores, fromTo, moving, environment),
                                {.environment = environment});

  using namespace lockkeeper::inventory;
  const auto file = std::filesystem::current_path() / "stock.db";
  std::filesystem::remove(file);
  StockService stock("sqlite:" + file.string(), locks, Way::fencedRow);
  stock.createSchema();
  stock.restock("pen", 1);
  const bool ours = stock.deduct("pen", 1, "order 42") == Deduction::deducted;
  std::cout << (ours && stock.level("pen") == 0 ? "order 42 is ours\n" : "order 42 failed\n");
}
