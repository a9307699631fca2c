#include "lockkeeper/etcd/use.h"

#include <memory>

#include "lockkeeper/etcd/etcd_driver.h"
#include "lockkeeper/etcd/etcd_options.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::etcd {

void use(StoreRegistry& registry) {
  for (const char* const scheme : {"etcd", "etcds"}) {
    registry.add(scheme,
                 [](const StoreUri& uri, const Environment& environment) -> std::shared_ptr<LockDriver> {
                   return std::make_shared<EtcdDriver>(EtcdOptions::fromUri(uri), environment);
                 });
  }
}

}  // namespace lockkeeper::etcd
