#include <lockkeeper/error.h>
#include <lockkeeper/etcd/use.h>
#include <lockkeeper/lock_manager.h>
#include <lockkeeper/store_registry.h>

#include <iostream>

/// No store is there; the exception that says so is thrown in one library and caught here.
int main() {
  lockkeeper::StoreRegistry stores;
  lockkeeper::etcd::use(stores);
  lockkeeper::LockManager locks(stores.open("etcd://127.0.0.1:1"));
  try {
    const auto order = locks.tryLock("order:42");
  } catch (const lockkeeper::StoreUnavailable&) {
    std::cout << "order 42 is ours, once there is a store\n";
  }
}
