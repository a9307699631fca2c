#pragma once

#include "lockkeeper/etcd/export.h"

namespace lockkeeper {
class StoreRegistry;
}

/// Locks on etcd.
namespace lockkeeper::etcd {

/// Adds the schemes `etcd` and `etcds` to `registry`.
LOCKKEEPER_ETCD_EXPORT void use(StoreRegistry& registry);

}  // namespace lockkeeper::etcd
