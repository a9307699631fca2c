#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lockkeeper/driver/clock.h"
#include "wire/dial/server_checks.h"

namespace lockkeeper::redis {

/// Since when a node may vote. A server that has restarted may have forgotten the votes that it gave before;
/// only when the longest lease has ended since then can none of them matter any more. Clients see a restart
/// by the server's uptime and by a new run_id; the later of both tells, so that a server whose wall clock was
/// set forward does not look older than it can be. One that tells no run_id may have restarted whenever a
/// connection to it has ended.
class RestartGuard {
 public:
  /// `length` is the longest lease; empty for no guard. `trustsSync`: see RedlockOptions::appendFsyncAlways.
  RestartGuard(std::optional<std::chrono::milliseconds> length, bool trustsSync)
      : length_(length), trustsSync_(trustsSync) {}

  /// The server has let us in, `now`; before, it was heard of at `lastHeard` for the last time.
  void met(const ServerFacts& facts, Instant now, Instant lastHeard);

  const std::string& runId() const { return runId_; }
  Instant votesFrom() const { return votesFrom_; }

 private:
  const std::optional<std::chrono::milliseconds> length_;
  const bool trustsSync_;
  bool met_ = false;
  std::string runId_;
  Instant votesFrom_ = Instant::min();
};

/// Whether everything that the server has acknowledged survives its crash.
bool keepsEverything(const ServerFacts& facts);

}  // namespace lockkeeper::redis
