#pragma once

#include "lockkeeper/postgres/export.h"

namespace lockkeeper {
class StoreRegistry;
}

/// Locks, rate limits, values and versioned rows on PostgreSQL.
namespace lockkeeper::postgres {

/// Adds the scheme `postgres+version` to `registry`, for locks, rate limits and values.
LOCKKEEPER_POSTGRES_EXPORT void use(StoreRegistry& registry);

}  // namespace lockkeeper::postgres
