#pragma once

#include <string>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/migration/state_store.h"

namespace lockkeeper::migration {

/// A lock that was seen in the old store.
struct OldLock {
  std::string key;
  std::string owner;  ///< The label of its holder.
};

/// How many locks of outsiders are told of at once.
constexpr std::size_t mostOutsiders = 16;

/// Whether `target` takes the key away from the old store.
bool leavesOldStore(std::string_view key, const MigrationState& state, const Rules& target);

/// The first `mostOutsiders` locks in the old store that `target` takes away from it, and whose holders are
/// no members by `state`; none when the store cannot list its locks. Blocks until `deadline` plus one I/O
/// timeout at most.
std::vector<OldLock> outsidersIn(LockDriver& oldStore, const MigrationState& state, const Rules& target,
                                 Instant deadline);

}  // namespace lockkeeper::migration
