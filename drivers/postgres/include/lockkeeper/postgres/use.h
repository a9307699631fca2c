#pragma once

#include "lockkeeper/postgres/export.h"

namespace lockkeeper {
class StoreRegistry;
}

/// Locks and limits on PostgreSQL.
namespace lockkeeper::postgres {

/// Adds the scheme `postgres+version` to `registry`, for locks and for values.
LOCKKEEPER_POSTGRES_EXPORT void use(StoreRegistry& registry);

}  // namespace lockkeeper::postgres
