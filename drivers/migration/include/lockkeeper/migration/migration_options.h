#pragma once

#include <chrono>
#include <string>

#include "lockkeeper/migration/export.h"
#include "lockkeeper/migration/rules.h"

namespace lockkeeper::migration {

/// How a process takes part in a migration. All processes of one migration should have the same values. If
/// `heartbeat`, `lease` and `maxTtl` differ, a step waits for each process according to its own values, which
/// are in its record; for a process whose record was lost, according to the longest known values. So do not
/// make `lease` or `maxTtl` longer while a step is under way. The `observation` of the process that takes the
/// step counts.
struct MigrationOptions {
  /// What the process writes as the migration's rules if nobody has written any. From then on, all processes
  /// follow what is written, whatever they are configured for; `lockkeeper migrate advance` changes it.
  Rules rules{Phase::legacy};

  /// The migration's name, 1 to 64 characters of [A-Za-z0-9_.-]: one for all processes that share the keys.
  std::string name = "migration";

  /// How often the process reads the migration's state, and so how soon it follows a change: 10 ms to 1 min,
  /// and at most a third of `lease`.
  std::chrono::milliseconds heartbeat{std::chrono::seconds{1}};

  /// For how long after a heartbeat the process takes and renews locks in only one of the stores: up to 10
  /// min. If the state store is out of reach for longer, it takes them in both. A longer lease bridges longer
  /// outages of that store; a shorter one lets the migration continue sooner after a process has died.
  std::chrono::milliseconds lease{std::chrono::seconds{15}};

  /// The longest ttl that a lock may have, up to 24 h; longer ones are refused. Each step of the migration
  /// waits for this time plus the lease for locks of processes that have died.
  std::chrono::milliseconds maxTtl{std::chrono::minutes{5}};

  /// For how long no holder other than members must have been seen in the old store before keys leave it: up
  /// to 24 h. To make it longer, restart all processes with the new value before any of them is on the way to
  /// modern.
  std::chrono::milliseconds observation{std::chrono::minutes{10}};
};

/// Throws std::invalid_argument that names the first value out of range, and what is allowed.
LOCKKEEPER_MIGRATION_EXPORT void checkOptions(const MigrationOptions& options);

}  // namespace lockkeeper::migration
