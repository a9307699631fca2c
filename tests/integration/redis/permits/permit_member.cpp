// Takes permits of the semaphore "s", and reads or writes under the lock "k", again and again until it is
// killed. Arguments: the port of redis-server, how many permits to take.

#include <chrono>
#include <string>
#include <thread>

#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

void work(const std::string& port, std::uint32_t permits) {
  StoreRegistry registry;
  redis::use(registry);
  LockManager manager(registry.open("redis://127.0.0.1:" + port));
  Semaphore semaphore(manager, "s", 5, {.ttl = 1s});
  for (int round = 0;; ++round) {
    const Lock held = semaphore.acquire(permits);
    const Lock lock = round % 4 == 0 ? manager.lock("k", {.ttl = 1s}) : manager.lockShared("k", {.ttl = 1s});
    std::this_thread::sleep_for(3ms);
  }
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count != 3) return 64;
  lockkeeper::test::work(arguments[1], static_cast<std::uint32_t>(std::stoul(arguments[2])));
}
