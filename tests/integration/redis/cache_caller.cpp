// 32 threads that want one key of a cache at once. Arguments: the port of redis-server, and a folder, in
// which they wait for the file "go", and the loader for "finish". The journals "asking", "loads" and
// "results" there tell what they do.

#include <filesystem>
#include <thread>

#include "journal.h"
#include "lockkeeper/cached_loader.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/redis/value_store.h"
#include "lockkeeper/store_registry.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

int call(const std::string& port, const std::filesystem::path& folder) {
  const std::string uri = "redis://127.0.0.1:" + port;
  StoreRegistry registry;
  redis::use(registry);
  const auto values =
      std::make_shared<redis::RedisValues>(redis::RedisOptions::fromUri(StoreUri::parse(uri)));
  const Journal asking(folder / "asking");
  const Journal loads(folder / "loads");
  const Journal results(folder / "results");
  const auto appears = [&](const char* file) {
    return waitUntil([&] { return std::filesystem::exists(folder / file); }, std::chrono::minutes{1});
  };
  // What the machine is busy with must not look like a store that is down.
  constexpr std::chrono::milliseconds patience = std::chrono::seconds{30};
  ManagerOptions managerOptions;
  managerOptions.operationTimeout = patience;
  CacheOptions options;
  options.staleFor = std::chrono::hours{1};
  options.waitFor = std::chrono::minutes{1};
  options.operationTimeout = patience;
  CachedLoader cache(
      values, std::make_shared<LockManager>(registry.open(uri), managerOptions),
      [&](std::string_view) {
        loads.add("load");
        appears("finish");
        return std::optional<std::string>("new");
      },
      options);
  std::vector<std::jthread> callers;
  for (int i = 0; i < 32; ++i) {
    callers.emplace_back([&] {
      appears("go");
      asking.add("asking");
      try {
        results.add(cache.get("hot").value_or("nothing"));
      } catch (const std::exception& error) {
        results.add(error.what());
      }
    });
  }
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  return count == 3 ? lockkeeper::test::call(arguments[1], arguments[2]) : 64;
}
