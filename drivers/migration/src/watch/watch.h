#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/migration/migration_options.h"
#include "lockkeeper/migration/state_store.h"
#include "watch/observation.h"
#include "watch/old_store_scan.h"

namespace lockkeeper::migration {

/// Takes the migration's steps. One member watches for all, so that the others need not read each other's
/// records: the one whose id is in the state (docs/adr/0074). If it ends, falls silent, or fails for a lease,
/// another one takes its place. That two watch for a moment does no harm: a commit compares what it rests on.
/// Not thread-safe.
class Watch {
 public:
  using Note = std::function<void(const std::string& message)>;

  /// `id` is that of the member.
  Watch(StateStore& stateStore, std::shared_ptr<LockDriver> oldStore, const MigrationOptions& options,
        std::shared_ptr<Clock> clock, std::string id, Note note);

  /// To be called after each heartbeat of the member, with what it has read. `seen` are holders in the old
  /// store that the member has met before. Returns whether the target has become the current rules.
  bool beat(const MigrationState& heard, const std::vector<OldLock>& seen, Instant deadline);

  /// Lets another member watch at once.
  void leave(Instant deadline);

 private:
  bool mayWatch(const MigrationState& heard, Instant now, bool isFirstBeat);
  void noteFailure(std::optional<Instant>& since);
  void stop();
  MigrationState readAll(Instant deadline);
  bool step(const MigrationState& state);
  bool isMember(const MigrationState& state) const;
  bool lookedThrough(const MigrationState& state, bool blocked);
  bool outsiderFound(const MigrationState& state);
  bool report(const MigrationState& state, const std::vector<OldLock>& seen, Instant deadline);
  void noteOnce(const std::string& message);

  StateStore& stateStore_;
  const MigrationOptions& options_;
  const std::shared_ptr<Clock> clock_;
  const std::string id_;
  const Note note_;
  OldStoreScan scan_;
  Observation observation_;
  bool watching_ = false;
  Instant lastBeat_ = Instant::min();
  Instant inTouchSince_ = Instant::min();
  std::uint64_t watcherStamp_ = 0;
  Instant watcherHeardAt_ = Instant::min();
  std::optional<Instant> nobodySince_;  // nobody has been watching
  Instant standAgainAt_ = Instant::min();
  Instant lastRead_ = Instant::min();
  std::optional<Instant> failingSince_;
  std::optional<Instant> scanFailingSince_;
  Instant scanAgainAt_ = Instant::min();
  bool clean_ = true;  // the last scan has found no outsider
  std::string noted_;
};

}  // namespace lockkeeper::migration
