#include <lockkeeper/lock_manager.h>
#include <lockkeeper/memory/memory_driver.h>
#include <lockkeeper/mutex.h>
#include <iostream>
#include <mutex>

int main() {
  lockkeeper::LockManager locks(std::make_shared<lockkeeper::MemoryDriver>());
  lockkeeper::Mutex order(locks, "order:42");
  const std::scoped_lock held(order);
  std::cout << (locks.tryLock("order:42") ? "two holders\n" : "order 42 is ours\n");
}
