#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "database/database.h"

namespace lockkeeper::inventory {

/// Which attempt has written the order's row, if any has or still may. The answer outlives a crash: servers
/// show a commit to others before they have flushed it, but a later commit that they acknowledge has flushed
/// both. Throws what the database throws, and Database::Undone.
std::optional<std::int64_t> writtenBy(Database& database, const std::string& orderId,
                                      Instant latest = Instant::max());

/// As writtenBy(), when COMMIT was sent and its answer was not seen: without an attempt, it never will be
/// done. Throws OutcomeUnknown when the database cannot be asked.
std::optional<std::int64_t> writtenDespite(const OutcomeUnknown& doubt, Database& database,
                                           const std::string& orderId, Instant latest = Instant::max());

}  // namespace lockkeeper::inventory
