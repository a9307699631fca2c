#include <lockkeeper/error.h>
#include <lockkeeper/lock_manager.h>
#include <lockkeeper/postgres/use.h>
#include <lockkeeper/store_registry.h>

#include <iostream>

/// No store is there; the exception that says so is thrown in one library and caught here.
int main() {
  lockkeeper::StoreRegistry stores;
  lockkeeper::postgres::use(stores);
  lockkeeper::LockManager locks(stores.open("postgres+version://shop@127.0.0.1:1/shop"));
  try {
    const auto order = locks.tryLock("order:42");
  } catch (const lockkeeper::StoreUnavailable&) {
    std::cout << "order 42 is ours, once there is a store\n";
  }
}
