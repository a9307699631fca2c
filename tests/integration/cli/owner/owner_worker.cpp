#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

#include "lockkeeper/mutex.h"
#include "lockkeeper/poco/owner/owner_pipe.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

/// usage: cli_owner_worker STORE KEY
/// Locks the key twice, prints its fence, and works until it is lost.
int main(int, char** arguments) {
  using namespace lockkeeper;
  std::signal(SIGTERM, SIG_IGN);  // it is to find the loss by itself
  StoreRegistry stores;
  redis::use(stores);
  const poco::InheritedOwner owner;
  LockManager locks(withOwner(stores.open(arguments[1]), owner.tokens()));
  ReentrantLock lock(locks, arguments[2]);
  if (!lock.try_lock() || !lock.try_lock()) {
    std::cout << "busy" << std::endl;
    return 75;
  }
  std::cout << *lock.fence() << std::endl;
  while (lock.valid()) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  lock.unlock();
  lock.unlock();
  std::cout << "lost" << std::endl;
}
