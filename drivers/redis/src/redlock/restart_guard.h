#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lockkeeper/base/clock.h"
#include "wire/dial/server_checks.h"

namespace lockkeeper::redis {

/// Since when a node may vote. A server that has restarted may have forgotten the votes that it gave before;
/// only when the longest lease has ended since then can none of them matter any more. Clients tell starts
/// apart by run_id, and measure on their own boot clocks: each start counts from when it was met first, by
/// this process or by another one that has left word of it (Observations). A server that tells no run_id may
/// have restarted whenever a connection to it has ended.
class RestartGuard {
 public:
  /// `length` is the longest lease; empty for no guard. `trustsSync`: see RedlockOptions::appendFsyncAlways.
  RestartGuard(std::optional<std::chrono::milliseconds> length, bool trustsSync)
      : length_(length), trustsSync_(trustsSync) {}

  /// The server has let us in, `now`.
  void met(const ServerFacts& facts, Instant now);
  /// Others have observed the start `runId` for so long that it may vote from then on.
  void observed(const std::string& runId, Instant votesFrom);

  bool isMet() const { return met_; }
  /// Of the present start; empty when the server tells none.
  const std::string& runId() const { return runId_; }
  Instant metAt() const { return metAt_; }
  Instant votesFrom() const { return votesFrom_; }

 private:
  const std::optional<std::chrono::milliseconds> length_;
  const bool trustsSync_;
  bool met_ = false;
  std::string runId_;
  Instant metAt_{};
  Instant votesFrom_ = Instant::min();
};

/// Whether everything that the server has acknowledged survives its crash.
bool keepsEverything(const ServerFacts& facts);

}  // namespace lockkeeper::redis
