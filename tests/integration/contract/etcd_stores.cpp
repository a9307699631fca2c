#include <functional>
#include <memory>
#include <string>

#include "etcd_cluster.h"
#include "lockkeeper/etcd/use.h"
#include "lockkeeper/store_registry.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;
namespace {

DriverFactory etcd() {
  const auto cluster = std::make_shared<std::unique_ptr<EtcdCluster>>();
  const auto open = [cluster] {
    if (!*cluster) *cluster = std::make_unique<EtcdCluster>();
    StoreRegistry registry;
    lockkeeper::etcd::use(registry);
    // A busy machine may take long.
    return registry.open((*cluster)->uri() + "?ioTimeout=5s");
  };
  return {.name = "Etcd",
          .open = open,
          .fence = FencePromise::durable,
          .waitable = true,
          .browsable = true,
          .breakable = true,
          .reportsLosses = true,
          .permits = true,
          // What etcd makes of any shorter one, with its own election timeout.
          .shortTtl = std::chrono::seconds{2},
          .expirySlack = std::chrono::seconds{1},
          .queued = [cluster] { return (*cluster)->waitingClaims().size(); },
          .placeKeptFor = std::chrono::seconds{2},
          .requests = [cluster] { return (*cluster)->requests(); }};
}

}  // namespace

std::vector<DriverFactory> etcdStores() { return {etcd()}; }

}  // namespace lockkeeper::test
