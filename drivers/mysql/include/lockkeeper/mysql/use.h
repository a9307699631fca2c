#pragma once

#include "lockkeeper/mysql/export.h"

namespace lockkeeper {
class StoreRegistry;
}

namespace lockkeeper::mysql {

/// Adds the schemes `mysql+getlock` and `mysql+version` to `registry`, and `mysql` for fences of other
/// stores.
LOCKKEEPER_MYSQL_EXPORT void use(StoreRegistry& registry);

}  // namespace lockkeeper::mysql
