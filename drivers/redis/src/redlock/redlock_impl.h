#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redlock_driver.h"
#include "redlock/observations.h"
#include "redlock/redlock_votes.h"
#include "redlock/round_report.h"
#include "redlock/voters.h"
#include "wire/mux/multiplexer.h"

namespace lockkeeper::redis {

/// A question to all nodes, what they have said, and how long it is worth waiting for them.
struct Round {
  Round(std::size_t nodes, std::size_t quorum) : request(nodes) { rules.needed = quorum; }

  Request request;
  AskRules rules;
};

/// What the operations of a Redlock driver are made of: rounds of questions to its nodes, and what a quorum
/// of answers means for a lease. Thread-safe.
class RedlockDriver::Impl {
 public:
  using VoteOf = std::function<Vote(const Answer& answer)>;

  Impl(RedlockOptions given, Environment world, std::shared_ptr<FenceSource> source);

  /// How long one round waits for nodes, for a lease of `ttl`.
  std::chrono::nanoseconds patience(std::chrono::milliseconds ttl) const;
  std::size_t quorum() const { return nodes.size() / 2 + 1; }
  Round round() const { return {nodes.size(), quorum()}; }
  Instant now() const { return environment.clock->now(); }

  /// Multiplexer::ask(); leaves nodes whose answers are malformed, and tells the listener of each.
  void ask(Round& round, std::chrono::nanoseconds patience, Instant deadline, const VoteOf& voteOf);

  /// Throws std::invalid_argument for a ttl beyond the restart guard.
  void checkTtl(std::chrono::milliseconds ttl) const;
  Instant leasedFrom(const Request& round, std::chrono::nanoseconds ttl) const;

  /// The grant of a round that has won. Gives it back and throws when too little of it is left, or when there
  /// is no fence.
  Granted accept(const Request& round, const AcquireRequest& request);
  Busy busy(const Request& round, std::size_t yes) const;
  /// Releases what was granted, or will be. False: a node may keep it, or grant it later, because it refused
  /// the release or has ended the connection behind the claim.
  bool withdraw(const Request& round, const AcquireRequest& request);
  /// One round of renewals, which writes the outcomes. Within Renewing, of the same `values`.
  void renew(Round& round, std::span<Renewal> renewals, std::span<const std::string> values,
             std::chrono::nanoseconds patience, Instant deadline);
  RenewOutcome renewed(const Request& round, std::size_t index) const;

  /// While it lives, releases of these values are noticed: repair() must not bring them back.
  class Renewing;
  void noteRelease(const std::string& value);
  /// Gives the leases that were renewed to the nodes that have lost them, or never had them. Within Renewing.
  void repair(const Request& round, std::span<const Renewal> renewals, std::span<const std::string> values);
  /// `isUndone`: nothing of the round is left, nor will be.
  [[noreturn]] void noQuorum(const Request& round, bool isUndone = true) const {
    throwNoQuorum(store, nodes, round, quorum(), isUndone);
  }

  const ForkGuard forkGuard;
  const RedlockOptions options;
  const Environment environment;
  const std::string store;
  const std::shared_ptr<FenceSource> fences;
  Voters voters;
  Multiplexer nodes;
  /// Empty where nodes vote at once.
  std::optional<Observations> observations;

 private:
  struct UnderRenewal {
    int times = 0;
    bool released = false;
  };
  std::mutex mutex_;
  std::map<std::string, UnderRenewal, std::less<>> renewing_;
};

class RedlockDriver::Impl::Renewing {
 public:
  Renewing(Impl& impl, std::span<const std::string> values);
  Renewing(const Renewing&) = delete;
  Renewing& operator=(const Renewing&) = delete;
  ~Renewing();

 private:
  Impl& impl_;
  const std::span<const std::string> values_;
};

}  // namespace lockkeeper::redis
