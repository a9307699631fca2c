#pragma once

#include "lockkeeper/postgres/export.h"

namespace lockkeeper {
class StoreRegistry;
}

/// Locks and limits on PostgreSQL.
namespace lockkeeper::postgres {

/// Adds the scheme `postgres+version` to `registry`.
LOCKKEEPER_POSTGRES_EXPORT void use(StoreRegistry& registry);

}  // namespace lockkeeper::postgres
