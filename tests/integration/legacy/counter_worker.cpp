// Adds to counters in files, under locks: counter_worker STORE FOLDER SECONDS KEYS. Prints how often it
// added, and how often it was told that ownership is uncertain.

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

struct Losses final : Listener {
  void on(const Event& event) override {
    if (event.kind == EventKind::lost && event.loss == LossReason::ownershipUncertain) ++uncertain;
  }
  std::atomic<int> uncertain{0};
};

int work(const std::string& store, const std::filesystem::path& folder, std::chrono::seconds length,
         int keys) {
  StoreRegistry registry;
  redis::use(registry);
  const auto losses = std::make_shared<Losses>();
  ManagerOptions options;
  options.environment.listener = losses;
  LockManager manager(registry.open(store), options);

  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<int> anyKey(0, keys - 1);
  std::uniform_int_distribution<int> anyPause(0, 2000);
  int added = 0;
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    const std::string key = "key" + std::to_string(anyKey(random));
    auto lock = manager.tryLock(key, {.ttl = 3s});
    if (!lock) {
      std::this_thread::sleep_for(std::chrono::microseconds{500 + anyPause(random)});
      continue;
    }
    const int count = std::atoi(readFile(folder / key).c_str());
    std::this_thread::sleep_for(std::chrono::microseconds{anyPause(random)});
    if (!lock->valid()) continue;
    writeFile(folder / key, std::to_string(count + 1));
    ++added;
  }
  std::cout << "added " << added << "\nuncertain " << losses->uncertain << "\n";
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count != 5) return 64;
  return lockkeeper::test::work(arguments[1], arguments[2], std::chrono::seconds{std::atoi(arguments[3])},
                                std::atoi(arguments[4]));
}
