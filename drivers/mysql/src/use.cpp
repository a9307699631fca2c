#include "lockkeeper/mysql/use.h"

#include <memory>

#include "getlock/fence_counter.h"
#include "lockkeeper/mysql/getlock_driver.h"
#include "lockkeeper/mysql/version_driver.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::mysql {
namespace {

template <class Driver>
std::shared_ptr<LockDriver> open(const StoreUri& uri, const Environment& environment) {
  return std::make_shared<Driver>(uri, environment);
}

}  // namespace

void use(StoreRegistry& registry) {
  registry.add("mysql+getlock", open<GetLockDriver>);
  registry.add("mysql+version", open<VersionDriver>);
  registry.addFences("mysql", [](const StoreUri& uri, const Environment& environment) {
    return std::make_shared<FenceCounter>(uri, environment);
  });
}

}  // namespace lockkeeper::mysql
