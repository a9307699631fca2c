// Takes the lock "k" again and again and writes into a journal when it has it and when it lets go of it.
// Arguments: the port of redis-server, the journal, its name, how many times, how long to hold it each time
// in ms, the ttl in ms.

#include <chrono>
#include <string>
#include <thread>

#include "journal.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

int takeTurns(const std::string& port, const std::string& path, const std::string& name, int turns,
              std::chrono::milliseconds hold, std::chrono::milliseconds ttl) {
  StoreRegistry registry;
  redis::use(registry);
  LockManager manager(registry.open("redis://127.0.0.1:" + port));
  const Journal journal(path);
  journal.add("up " + name);
  for (int turn = 0; turn < turns; ++turn) {
    Lock lock = manager.lock("k", {.ttl = ttl, .waitFor = std::chrono::minutes{1}});
    // Before the end of the lease, as a program must that uses no fence.
    if (lock.valid()) journal.add("in " + name + " " + std::to_string(lock.fence().value_or(0)));
    std::this_thread::sleep_for(hold);
    journal.add((lock.valid() ? "out " : "lost ") + name);
  }
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count != 7) return 64;
  return lockkeeper::test::takeTurns(arguments[1], arguments[2], arguments[3], std::stoi(arguments[4]),
                                     std::chrono::milliseconds{std::stoi(arguments[5])},
                                     std::chrono::milliseconds{std::stoi(arguments[6])});
}
