#pragma once

#include <chrono>
#include <vector>

#include "lockkeeper/migration/state_store.h"

namespace lockkeeper::migration {

/// blockersOf(), for a member that knows for how long the old store has been watched for outsiders in the way
/// of `target`.
std::vector<Blocker> blockersFor(const MigrationState& state, const Rules& target,
                                 std::chrono::milliseconds observation, std::chrono::milliseconds watched);

}  // namespace lockkeeper::migration
