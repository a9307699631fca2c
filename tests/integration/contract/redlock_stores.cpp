#include <array>
#include <memory>
#include <string>

#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "lockkeeper/testing/fake_fences.h"
#include "redis_stores.h"
#include "redlock_uri.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;
using lockkeeper::testing::FakeFences;
namespace {

/// Five servers; without restartGuard, because they have only just started and the suites use long leases.
DriverFactory redlock(const char* name, std::shared_ptr<FenceSource> fences) {
  using Servers = std::array<RedisServer, 5>;
  const auto open = [fences, servers = std::make_shared<std::unique_ptr<Servers>>()] {
    if (!*servers) *servers = std::make_unique<Servers>();
    StoreRegistry registry;
    redis::use(registry);
    registry.addFences("fake", [fences](const StoreUri&, const Environment&) { return fences; });
    const std::string query = "restartGuard=off&nodeTimeout=2s";
    return registry.open(redlockUri(**servers, fences ? query + "&fenceStore=fake:" : query));
  };
  return {.name = name,
          .open = open,
          .fence = fences ? fences->promise() : FencePromise::none,
          .breakable = true,
          .shortTtl = std::chrono::seconds{1}};
}

}  // namespace

std::vector<DriverFactory> redlockStores() {
  return {redlock("Redlock", nullptr), redlock("RedlockFenced", std::make_shared<FakeFences>())};
}

}  // namespace lockkeeper::test
