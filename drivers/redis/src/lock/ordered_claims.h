#pragma once

#include <span>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

/// Several keys that are claimed by one script, in their order until one is busy.

/// Adds the script's call, with one lease for all.
void addOrderedClaims(Request& request, Script::By by, const RedisOptions& options,
                      std::span<const AcquireRequest> claims);

/// What `reply`, one of those to `request`, says of them, as Batchable::acquireInOrder() returns it. Throws
/// as RedisStore::refuse() and unexpected().
std::vector<AcquireResult> orderedResults(RedisStore& store, const Request& request, const Reply& reply,
                                          std::span<const AcquireRequest> claims);

/// Those of `claims` that were granted: all but a busy one at the end of `results`.
std::span<const AcquireRequest> grantedOf(std::span<const AcquireRequest> claims,
                                          std::span<const AcquireResult> results);

}  // namespace lockkeeper::redis
