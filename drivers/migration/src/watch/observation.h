#pragma once

#include <map>
#include <optional>
#include <string>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/migration/state_store.h"

namespace lockkeeper::migration {

/// How long this process has seen the records of the migration's state as they are, on its own boot clock.
/// The store's clock may jump: then the records of living members disappear, and the ages of all others are
/// wrong. Not thread-safe.
class Observation {
 public:
  /// Begins anew: members may have come and gone unseen.
  void restart() { rules_.reset(); }

  /// Replaces the ages in `state`, which was asked for at `askedAt` and has been read by `now`, by what this
  /// process has measured: never longer than what is true, however long it pauses in between. Adds the
  /// members whose records have disappeared while their locks may still live, and takes away those that have
  /// been silent for longer than that.
  void measure(MigrationState& state, Instant askedAt, Instant now);

 private:
  struct Heard {
    Member member;
    Instant at;  ///< When its last record was seen first, or may have been written at the latest.
  };

  void measureMembers(MigrationState& state, std::chrono::milliseconds leap, Instant askedAt, Instant now);

  std::optional<std::string> rules_;
  std::chrono::milliseconds rulesAge_{};  // on the store's clock
  Instant rulesSince_{};
  std::optional<std::uint64_t> inTheWay_;  // its stamp
  Instant inTheWaySince_{};
  std::map<std::string, Heard, std::less<>> members_;
};

}  // namespace lockkeeper::migration
