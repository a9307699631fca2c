// One of several processes leads; when it dies, another one does. See README.md beside it.

#include <lockkeeper/leader_election.h>
#include <lockkeeper/lock_manager.h>
#include <lockkeeper/redis/use.h>
#include <lockkeeper/store_registry.h>

#include <chrono>
#include <iostream>
#include <memory>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  lockkeeper::StoreRegistry stores;
  lockkeeper::redis::use(stores);
  const auto locks =
      std::make_shared<lockkeeper::LockManager>(stores.open(argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0"));

  // Both hooks start and stop the work, and do not do it: the lease runs while they do.
  const lockkeeper::LeaderElection election(
      locks, {.name = "dispatcher", .ttl = 2s},
      {.elected =
           [](const lockkeeper::Term& term) {
             std::cout << "leads, fence " << term.fence.value() << std::endl;
           },
       .deposed = [](const lockkeeper::Term&) { std::cout << "leads no more" << std::endl; }});
  std::cout << "a candidate; end with Enter" << std::endl;
  std::cin.get();
}
