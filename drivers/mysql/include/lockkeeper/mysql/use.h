#pragma once

#include "lockkeeper/mysql/export.h"

namespace lockkeeper {
class StoreRegistry;
}

/// Locks and limits on MySQL and MariaDB, and optimistic updates of rows there.
namespace lockkeeper::mysql {

/// Adds the schemes `mysql+getlock` and `mysql+version` to `registry`, and `mysql` for fences of other
/// stores.
LOCKKEEPER_MYSQL_EXPORT void use(StoreRegistry& registry);

}  // namespace lockkeeper::mysql
