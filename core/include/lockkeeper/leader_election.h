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
  /// The key of the lock that the leader holds. All candidates give the same.
  std::string name{};

  /// The leader's lease, which is renewed: another one is elected at most that long after a leader has gone
  /// silent.
  std::chrono::milliseconds ttl{std::chrono::seconds{10}};

  /// How long before the end of a lease that could not be renewed the leader is deposed. `deposed` must be
  /// done by then: nobody else is elected sooner. Default: a tenth of ttl. LockOptions::safetyMargin.
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

/// What an election calls. `elected` and `deposed` come from the election's own thread: never two at a time,
/// always in turn, each `elected` followed by its `deposed`. They should start and stop the work, not do it:
/// as long as one of them runs, the next cannot.
struct ElectionHooks {
  /// This instance leads from now on. When it throws, the term ends, as by resign(ttl).
  std::function<void(const Term& term)> elected{};

  /// It leads no longer. When this has returned, nothing of the leader's work may still run. Must be done
  /// within the safety margin: that is how much earlier than its end a lease counts as lost. After resign()
  /// the others wait for it, up to callbackTimeout.
  std::function<void(const Term& term)> deposed{};
};

/// Elects one leader among all candidates of a name, and again when it has gone. Each object is a candidate
/// from its construction to its destruction, or until its LockManager is stopped. It has one thread. The
/// manager's listener hears what goes wrong: a campaign that fails (gaveUp), a lease that is lost, callbacks
/// that throw or are late. Thread-safe.
///
/// Two never lead at once as long as `deposed` keeps its time. A process that was stopped for longer than its
/// lease is deposed when it wakes up, too late: only isLeader(), asked before each step, and the fence at the
/// resource guard against that.
class LOCKKEEPER_CORE_EXPORT LeaderElection {
 public:
  /// Starts to campaign; the first callback may come before it returns. Throws std::invalid_argument that
  /// names the first option out of range, and std::system_error when no thread can be started.
  LeaderElection(std::shared_ptr<LockManager> manager, ElectionOptions options, ElectionHooks hooks);
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  /// Resigns and ends the thread. Blocks for the callbacks, each for callbackTimeout at most, and for one
  /// attempt at the store. A callback that hangs longer is left behind with its thread, and reported. May be
  /// called from a callback and from a stop callback of Term::ended: then it does not wait, and `deposed` may
  /// still come after it.
  ~LeaderElection();

  /// Whether this instance leads now. Local, no I/O. Once false, it stays false until `elected` is called.
  bool isLeader() const;

  /// The fence of the present term, if there is one.
  std::optional<Fence> fence() const;

  /// Gives up the term: `deposed`, and only then the others may be elected. This candidate does not campaign
  /// for `pause`, so that another one gets its turn, and then does again. False, and nothing is done, when it
  /// is not the leader. Blocks like the destructor; from within a callback it does not wait.
  bool resign(std::chrono::milliseconds pause);

 private:
  const std::shared_ptr<detail::Candidate> candidate_;
};

}  // namespace lockkeeper
