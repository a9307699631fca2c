#include <lockkeeper/lock_manager.h>
#include <lockkeeper/store_registry.h>

int main() {
  const lockkeeper::StoreRegistry stores;
  lockkeeper::LockManager locks(stores.open("memory:"));
  return locks.lock("order:42").valid() ? 0 : 1;
}
