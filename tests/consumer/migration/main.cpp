#include <lockkeeper/lock_manager.h>
#include <lockkeeper/migration/open.h>
#include <lockkeeper/store_registry.h>

#include <iostream>

int main() {
  const lockkeeper::migration::MigrationStores fromTo{.from = "memory:", .to = "memory:", .stateStore = ""};
  lockkeeper::migration::MigrationOptions moving;
  moving.rules = lockkeeper::migration::Rules(lockkeeper::migration::Phase::both);
  lockkeeper::LockManager locks(lockkeeper::migration::open(lockkeeper::StoreRegistry(), fromTo, moving));
  std::cout << (locks.tryLock("order:42") ? "order 42 is ours\n" : "order 42 is busy\n");
}
