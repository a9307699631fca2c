#pragma once

#include <chrono>
#include <cstddef>
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
  std::string admit(std::size_t node, const ServerFacts& facts, Instant now);

  /// Why a node may not vote yet; empty when it may.
  std::string unfit(std::size_t node, Instant now) const;

  /// A start of a server, and when this process met it.
  struct Start {
    std::size_t node = 0;
    std::string runId{};
    Instant metAt{};
  };
  /// Those about which the nodes should be asked: others may have observed them for longer. Those that may
  /// vote by what this process has seen are among them once, so that others learn of it.
  std::vector<Start> toObserve(Instant now);
  /// Whether no node has been met yet.
  bool knowNobody() const;
  /// Asked then, its node has said for how long it still has to be observed.
  void observed(const Start& start, Instant asked, std::chrono::milliseconds left);

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> stores_;
  std::vector<RestartGuard> guards_;
  std::vector<std::string> known_;  // by node: the start of which nothing more has to be told or asked
};

}  // namespace lockkeeper::redis
