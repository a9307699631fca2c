// Holds the lock "k" until it is lost, then writes to the resource all the same, as a holder does that has
// not noticed. Arguments: the port of redis-server, and a folder for what it has to say.

#include <filesystem>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/fenced_write.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "process.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

/// Appears as a whole.
void say(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path unfinished = path.string() + ".unfinished";
  writeFile(unfinished, text);
  std::filesystem::rename(unfinished, path);
}

int hold(const std::string& port, const std::filesystem::path& folder) {
  StoreRegistry registry;
  redis::use(registry);
  LockManager manager(registry.open("redis://127.0.0.1:" + port));
  const Lock lock = manager.lock("k", {.ttl = std::chrono::seconds{1}});
  const Fence fence = lock.fence().value_or(0);
  say(folder / "held", std::to_string(fence));

  if (!waitUntil([&] { return !lock.valid(); }, std::chrono::minutes{1})) return 1;
  const bool told = waitUntil([&] { return lock.lost().stop_requested(); });
  std::vector<std::string> write{"redis-cli", "-p", port};
  for (const std::string& word : redis::fencedWrite("resource", fence, "written too late"))
    write.push_back(word);
  const Finished answer = runToEnd(write);
  say(folder / "end", std::string(told ? "told" : "not told") + ", " + answer.output);
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  return count == 3 ? lockkeeper::test::hold(arguments[1], arguments[2]) : 64;
}
