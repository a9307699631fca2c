#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "lockkeeper/redis/redlock_options.h"
#include "redlock/restart_guard.h"

namespace lockkeeper::redis {

/// Which nodes may vote: each must be a server of its own, and none may have restarted so lately that it may
/// have forgotten its votes. Thread-safe.
class Voters {
 public:
  explicit Voters(const RedlockOptions& options);

  /// A Multiplexer::Admit: refuses a server that another node is already.
  std::string admit(std::size_t node, const ServerFacts& facts, Instant now, Instant lastHeard);

  /// Why a node may not vote yet; empty when it may.
  std::string unfit(std::size_t node, Instant now) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> stores_;
  std::vector<RestartGuard> guards_;
};

}  // namespace lockkeeper::redis
