#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "lockkeeper/environment.h"
#include "redlock/voters.h"
#include "wire/mux/multiplexer.h"

namespace lockkeeper::redis {

/// Shares with other processes for how long each node is known to have run without a restart, by a record on
/// the node itself (scripts/redlock/observe_run.lua). So a new process need not observe the nodes for as long
/// as the restart guard, unless nobody has. Thread-safe.
class Observations {
 public:
  Observations(Multiplexer& nodes, Voters& voters, const Environment& environment,
               std::chrono::milliseconds guard);

  /// Asks the nodes that may not vote yet what others have seen of them, and tells those that may. Costs a
  /// round trip, and nothing when there is no such node. Waits for answers for `patience`, until `deadline`
  /// at most. Throws as Multiplexer::ask().
  void exchange(std::size_t quorum, std::chrono::nanoseconds patience, Instant deadline);

 private:
  void meetNodes(std::size_t quorum, std::chrono::nanoseconds patience, Instant deadline);
  void tellOfRefusal(std::size_t node, const Reply& error);

  Multiplexer& nodes_;
  Voters& voters_;
  const Environment environment_;
  const std::chrono::milliseconds guard_;
  const std::string machine_;
  std::atomic<bool> told_ = false;
};

}  // namespace lockkeeper::redis
