#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "base/relay.h"
#include "lock/keeper/failover_doubt.h"
#include "lock/keeper/lease_renewer.h"
#include "lock/keeper/lease_table.h"
#include "lock/keeper/loss_teller.h"
#include "lock/keeper/unawaited_releases.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/listener.h"

namespace lockkeeper::detail {

/// Keeps the leases of one manager. Connects the classes that renew them, tell their losses, doubt them after
/// a failover, and release claims in the background, and owns the threads. Some threads renew and release,
/// and may have to wait for the store; others tell losses and never ask the store. All start with the first
/// lock. Thread-safe. Held by shared_ptr: its threads keep it alive until they have ended.
class LeaseKeeper final : public LeaseHost, public std::enable_shared_from_this<LeaseKeeper> {
 public:
  LeaseKeeper(std::shared_ptr<LockDriver> driver, const Environment& environment, std::string owner,
              std::chrono::nanoseconds operationTimeout, std::chrono::nanoseconds retryPause);

  /// Starts the threads. To be called before a key is claimed: a lock that was granted without them could not
  /// be kept. Throws StoreUnavailable if the system has no threads left; the next call tries again. Does
  /// nothing once they run.
  void start();

  /// Gives the lease's claim a token, before it is sent. If the driver reports the loss of that token before
  /// its grant, the lease is suspect, and so asked for again, from add() on.
  void expect(Lease& lease, const Token& token);
  /// Ends expect(). Does nothing for a lease that is kept or not expected.
  void stopExpecting(Lease& lease) noexcept;

  /// Starts to renew and watch the lease, which must live until remove(). A loss is not told before
  /// announced(). If there is no memory, throws and has done nothing.
  void add(Lease& lease);

  /// The listener was told of the lock: from now on it may be told of its loss.
  void announced(Lease& lease) { losses_.announced(lease); }

  /// Lease::startHolding(), for a lease that is kept already.
  void startHolding(Lease& lease, const LockTerms& terms);

  /// Ends add(), because the holder releases. False if the lease was lost or released before.
  bool remove(Lease& lease) noexcept;
  /// The same for a lease that is to end in the store at `end`, which the caller asks for by
  /// Lease::lastRenewal(). If a renewal that is under way comes to the store after it, it is sent again.
  bool leaveToEnd(Lease& lease, Instant end) noexcept;

  /// The store has confirmed the release that began at lease.heldUntil().
  void freed(Lease& lease) noexcept { doubt_.leaseFreed(lease); }

  /// How long the lease's grant may be handed on; empty if the lease was lost or released. Only for a lease
  /// whose grant has turns left.
  std::optional<LocalQueue::HandingOn> handingOnOf(Lease& lease);

  /// Hands the grant over to the lease of the next caller in line, in place of remove() and a release.
  /// Returns the condition that the caller has to notify. Null, and nothing was done, if nobody can take it
  /// over `now`, or if a doubt has arisen since the store granted it.
  std::condition_variable* handOver(Lease& lease, Instant now);

  /// Posts the release of a lease after remove() and Lease::endHolding(). Its end is told when the outcome
  /// has come. False if it was not sent.
  bool post(Lease& lease) noexcept { return releases_.post(lease.claim(), lease.shared_from_this()); }
  void releaseAnswered(Lease& lease, ReleaseOutcome outcome) noexcept override;
  void releaseFailed(Lease& lease, ErrorCode code, std::string_view text) noexcept override;

  // As LossTeller has them.
  void loseTogether(Lease& lease, std::stop_source all) { losses_.loseTogether(lease, std::move(all)); }
  std::stop_token lostToken(Lease& lease) noexcept override { return losses_.lostToken(lease); }
  bool stillRuns(Lease& lease) override { return losses_.stillRuns(lease); }

  /// As LeaseRenewer::renewed().
  bool renewed(Lease& lease, const Renewal& renewal, Instant began) {
    return renewer_.renewed(lease, renewal, began);
  }

  /// Releases a claim that nobody uses, and that may have been granted, in the background: until the store
  /// has answered, or until `until`. If there is no memory, the claim ends with its ttl.
  void abandon(const Claim& claim, Instant until) noexcept;

  /// How many leases are LockState::suspect.
  std::size_t suspects() { return leases_.suspects(); }

  /// Waits for the outcomes of posted releases, tries once more what was abandoned, and ends all threads: by
  /// `until` at most. A thread that is still busy then is left to itself, and reports nothing any more. The
  /// second call does nothing.
  void shutDown(Instant until);

 private:
  class EventGate;
  class LossInbox;

  void startThreads();
  void watch(Instant renewal, Instant end);
  void watchRenewal(Instant renewal);
  Instant due();
  void work(std::unique_lock<std::mutex>& held);
  void claimsLost(std::span<const Token> tokens) noexcept;
  void claimsInDoubt() noexcept;

  const std::shared_ptr<LockDriver> driver_;
  const std::string store_;                  // its name in events
  const std::shared_ptr<EventGate> events_;  // null when nobody listens
  const Environment environment_;
  LossReporting* const reporting_;  // null when the driver reports no losses
  DoubtReporting* const doubting_;  // null when it has no doubts

  std::mutex startMutex_;  // one call of start() at a time
  std::atomic<bool> started_ = false;

  std::mutex mutex_;
  LeaseTable leases_;
  UnawaitedReleases releases_;
  FailoverDoubt doubt_;
  LossTeller losses_;
  LeaseRenewer renewer_;
  const std::shared_ptr<LossInbox> inbox_;
  Relay threads_;  // renew, release and check
};

}  // namespace lockkeeper::detail
