#pragma once

#include "lockkeeper/store_registry.h"

#ifdef LOCKKEEPER_WITH_ETCD
#include "lockkeeper/etcd/use.h"
#endif
#ifdef LOCKKEEPER_WITH_REDIS
#include "lockkeeper/redis/use.h"
#endif
#ifdef LOCKKEEPER_WITH_MYSQL
#include "lockkeeper/mysql/use.h"
#endif
#ifdef LOCKKEEPER_WITH_POSTGRES
#include "lockkeeper/postgres/use.h"
#endif

namespace lockkeeper {

/// All stores that the program is built with.
inline StoreRegistry knownStores() {
  StoreRegistry registry;
#ifdef LOCKKEEPER_WITH_REDIS
  redis::use(registry);
#endif
#ifdef LOCKKEEPER_WITH_MYSQL
  mysql::use(registry);
#endif
#ifdef LOCKKEEPER_WITH_POSTGRES
  postgres::use(registry);
#endif
#ifdef LOCKKEEPER_WITH_ETCD
  etcd::use(registry);
#endif
  return registry;
}

}  // namespace lockkeeper
