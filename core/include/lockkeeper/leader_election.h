#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "lockkeeper/export.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper {

namespace detail {
class Candidate;
}

/// How one candidate takes part. Values outside their range are refused by LeaderElection().
struct ElectionOptions {
  /// The key of the lock that the leader holds, the same for all candidates.
  std::string name{};

  /// The leader's lease, which is renewed. Another leader is elected at most this long after one has gone
  /// silent.
  std::chrono::milliseconds ttl{std::chrono::seconds{10}};

  /// If a lease cannot be renewed, the leader is deposed this long before its end. `deposed` must return
  /// within that time: nobody else is elected sooner. Default: a tenth of ttl. See LockOptions::safetyMargin.
  std::optional<std::chrono::milliseconds> safetyMargin{};

  /// How long resign() and the destructor wait for a callback that hangs: 1 ms to 1 h.
  std::chrono::milliseconds callbackTimeout{std::chrono::seconds{5}};
};

/// One time of being the leader.
struct Term {
  std::uint64_t number;        ///< 1, 2, … of this LeaderElection.
  std::optional<Fence> fence;  ///< Give it to resources with each write; empty when the store promises none.
  std::stop_token ended;       ///< Fires as soon as the term is over, before `deposed`, also while `elected`
                               ///< still runs. Its stop callbacks must be quick.
};

/// What an election calls, on its own thread and never two at a time: each `elected` is followed by its
/// `deposed`. They should start and stop the work, not do it: while one of them runs, the next cannot.
struct ElectionHooks {
  /// This instance leads from now on. If the hook throws, the term ends as by resign(ttl).
  std::function<void(const Term& term)> elected{};

  /// This instance does not lead any more. When the hook returns, none of the leader's work may still run. It
  /// must return within the safety margin. After resign(), the other candidates wait for it, up to
  /// callbackTimeout.
  std::function<void(const Term& term)> deposed{};
};

/// Elects one leader among all candidates of a name, and another one when the leader has gone. Each object is
/// a candidate, with one thread, from its construction to its destruction, or until its LockManager is
/// stopped. It reports to the manager's listener what goes wrong: a campaign that fails (gaveUp), a lease
/// that is lost, callbacks that throw or are late. Thread-safe.
///
/// There are never two leaders at the same time as long as `deposed` returns in time. A process that was
/// stopped for longer than its lease is deposed too late, when it wakes up: only isLeader(), asked before
/// each step, and the fence at the resource guard against that.
class LOCKKEEPER_CORE_EXPORT LeaderElection {
 public:
  /// Starts to campaign. The first callback may come before the constructor returns. Throws
  /// std::invalid_argument that names the first option out of range, and std::system_error when no thread can
  /// be started.
  LeaderElection(std::shared_ptr<LockManager> manager, ElectionOptions options, ElectionHooks hooks);
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  /// Resigns and ends the thread. Blocks for the callbacks, each for callbackTimeout at most, and for one
  /// attempt at the store. A callback that takes longer is reported, and left behind with its thread. May be
  /// called from a callback and from a stop callback of Term::ended: then it does not wait, and `deposed` may
  /// still be called after it.
  ~LeaderElection();

  /// Whether this instance leads now. Local, no I/O. Once false, it stays false until `elected` is called.
  bool isLeader() const;

  /// The fence of the present term, if there is one.
  std::optional<Fence> fence() const;

  /// Ends the term: calls `deposed`, and only then may the others be elected. This candidate does not
  /// campaign for `pause`, so that another one gets its turn. Returns false, and does nothing, if this
  /// instance is not the leader. Blocks like the destructor; from within a callback it does not wait.
  bool resign(std::chrono::milliseconds pause);

 private:
  const std::shared_ptr<detail::Candidate> candidate_;
};

}  // namespace lockkeeper
