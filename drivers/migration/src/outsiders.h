#pragma once

#include <optional>
#include <string>

#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/migration/state_store.h"

namespace lockkeeper::migration {

/// A key that is held in the old store by somebody who is no member, and that `target` takes away from that
/// store; empty when there is none, or when the store cannot list its locks. Blocks until `deadline` plus one
/// I/O timeout at most.
std::optional<std::string> outsiderIn(LockDriver& oldStore, const MigrationState& state, const Rules& target,
                                      Instant deadline);

}  // namespace lockkeeper::migration
