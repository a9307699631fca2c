// The embedded store through the whole of core.

#include <memory>
#include <vector>

#include "contest.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"

int main(int count, char** arguments) {
  using namespace lockkeeper;
  LockManager locks(std::make_shared<MemoryDriver>());
  const Lock held = locks.lock("held");
  const std::vector<bench::Way> ways{
      bench::pairs("lock and unlock", locks),
      {"a key that is taken", [&](int) { return [&] { (void)locks.tryLock("held"); }; }},
      {"valid()", [&](int) { return [&] { (void)held.valid(); }; }}};
  bench::Contest contest("memory", "", count, arguments);
  contest.measure(1, ways, {{.ours = "lock and unlock", .client = 0.4}});
  contest.measure(4, ways, {});
  return 0;
}
