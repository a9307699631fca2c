#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redlock_driver.h"
#include "redlock/redlock_votes.h"
#include "redlock/round_report.h"
#include "wire/mux/node_group.h"

namespace lockkeeper::redis {

/// What the operations of a Redlock driver are made of: rounds of questions to its nodes, and what a quorum
/// of answers means for a lease. Thread-safe.
class RedlockDriver::Impl {
 public:
  using VoteOf = std::function<Vote(const Round::Seat& seat)>;

  Impl(RedlockOptions given, Environment world, std::shared_ptr<FenceSource> source);

  /// How long one round waits for nodes, for a lease of `ttl`.
  std::chrono::nanoseconds patience(std::chrono::milliseconds ttl) const;
  std::size_t quorum() const { return group.quorum(); }
  Instant now() const { return environment.clock->now(); }

  /// NodeGroup::ask(); leaves nodes that answer nonsense, and tells the listener of each.
  void ask(Round& round, std::chrono::nanoseconds patience, Instant deadline, const VoteOf& voteOf);

  /// Throws ConfigError for a ttl beyond the restart guard.
  void checkTtl(std::chrono::milliseconds ttl) const;
  Instant leasedFrom(const Round& round, std::chrono::nanoseconds ttl) const;

  /// The grant of a round that has won. Gives it back and throws when too little of it is left, or when there
  /// is no fence.
  Granted accept(const Round& round, const AcquireRequest& request);
  Busy busy(const Round& round, std::size_t yes) const;
  void giveBack(const Round& round, const AcquireRequest& request);
  RenewOutcome renewed(const Round& round, std::size_t index) const;
  void repair(const Round& round, std::span<const Renewal> renewals, std::span<const std::string> values);
  [[noreturn]] void noQuorum(const Round& round) const { throwNoQuorum(store, group, round); }

  const ForkGuard forkGuard;
  const RedlockOptions options;
  const Environment environment;
  const std::string store;
  const std::shared_ptr<FenceSource> fences;
  NodeGroup group;
};

}  // namespace lockkeeper::redis
