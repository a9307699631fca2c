#pragma once

#include <memory>
#include <string>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store/shared_records.h"
#include "lockkeeper/store_registry.h"

#ifdef LOCKKEEPER_WITH_ETCD
#include "lockkeeper/etcd/use.h"
#endif
#ifdef LOCKKEEPER_WITH_MYSQL
#include "lockkeeper/mysql/use.h"
#endif

namespace lockkeeper::test {

inline std::shared_ptr<LockDriver> openStore(const std::string& uri) {
  StoreRegistry registry;
  redis::use(registry);
#ifdef LOCKKEEPER_WITH_MYSQL
  mysql::use(registry);
#endif
#ifdef LOCKKEEPER_WITH_ETCD
  etcd::use(registry);
#endif
  return registry.open(uri);
}

/// Null when the store cannot keep a migration's state.
inline std::shared_ptr<SharedRecords> openStateStore(const std::string& uri) {
  return capability<SharedRecords>(openStore(uri));
}

}  // namespace lockkeeper::test
