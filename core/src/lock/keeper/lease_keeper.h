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
#include "lock/keeper/posted_outcomes.h"
#include "lock/keeper/unawaited_releases.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/listener.h"

namespace lockkeeper::detail {

/// Keeps the leases of one manager: brings together what renews them, what tells their losses, what doubts
/// them and what releases those that nobody waits for, and has the threads. Few threads renew and release,
/// and may be held up by the store; others tell losses and never talk to it. All start with the first lock.
/// Thread-safe.
///
/// Held by shared_ptr: its threads keep it alive until they have ended.
class LeaseKeeper final : public LeaseHost, public std::enable_shared_from_this<LeaseKeeper> {
 public:
  LeaseKeeper(std::shared_ptr<LockDriver> driver, const Environment& environment, std::string owner,
              std::chrono::nanoseconds operationTimeout, std::chrono::nanoseconds retryPause);

  /// Starts the threads, once. Apart from add(), so that no lock is taken first and then cannot be kept.
  /// Throws StoreUnavailable when there are none to be had; the next call tries again.
  void start();

  /// The lease's claim has this token from now on, and is about to be sent. The store may be faster in
  /// telling of its loss than of its grant: a lease of whose loss it tells from now on is suspect when it is
  /// kept.
  void expect(Lease& lease, const Token& token);
  /// Does nothing for a lease that is kept, or is not expected.
  void stopExpecting(Lease& lease) noexcept;

  /// Starts to renew and watch the lease, which lives at least until remove(). Its loss is not told yet. When
  /// there is no memory for that, throws and has done nothing.
  void add(Lease& lease);

  /// Others have heard of the lock: from now on they may hear of its loss.
  void announced(Lease& lease) { losses_.announced(lease); }

  /// Lease::startHolding(), for a lease that is kept already.
  void startHolding(Lease& lease, const LockTerms& terms);

  /// Ends that, because the holder releases. False when the lease was lost or released before.
  bool remove(Lease& lease) noexcept;
  /// Likewise, and the lease is left to end in the store at `end`. The caller sees to that by
  /// Lease::lastRenewal(); should a renewal that is under way overtake that, it is sent again.
  bool leaveToEnd(Lease& lease, Instant end) noexcept;

  /// The store has confirmed the release that began at lease.releasedAt.
  void freed(Lease& lease) noexcept { doubt_.leaseFreed(lease); }

  /// For how long the lease's grant may be handed on; empty when the lease was lost or released. Only for a
  /// lease whose grant has turns left.
  std::optional<LocalQueue::HandingOn> handingOnOf(Lease& lease);

  /// In place of remove() and a release: keeps the lease that the next caller in line waits with, which takes
  /// over what the store has granted. Returns what is to be notified then. Null when nobody can take it over
  /// `now`, or the lease is in doubt or was since it was granted; then nothing has happened.
  std::condition_variable* handOver(Lease& lease, Instant now);

  /// Posts the release of a lease that was removed and whose holding has ended; its end is told when the
  /// outcome has come. False: not sent.
  bool post(Lease& lease) noexcept { return posted_.post(lease); }
  void releaseAnswered(Lease& lease, ReleaseOutcome outcome) noexcept override {
    posted_.answered(lease, outcome);
  }
  void releaseFailed(Lease& lease, ErrorCode code, std::string_view text) noexcept override {
    posted_.failed(lease, code, text);
  }

  /// As LossTeller has them.
  void loseTogether(Lease& lease, std::stop_source all) { losses_.loseTogether(lease, std::move(all)); }
  std::stop_token lostToken(Lease& lease) noexcept override { return losses_.lostToken(lease); }
  bool stillRuns(Lease& lease) override { return losses_.stillRuns(lease); }

  /// As LeaseRenewer::renewed().
  bool renewed(Lease& lease, const Renewal& renewal, Instant began) {
    return renewer_.renewed(lease, renewal, began);
  }

  /// Releases `claim` in the background, until the store has answered or `until` has come: its outcome is not
  /// known, and nobody uses it any more. Without memory for that, it ends with its ttl.
  void abandon(const Claim& claim, Instant until) noexcept;

  /// How many leases are LockState::suspect.
  std::size_t suspects() { return leases_.suspects(); }

  /// Ends all threads, after the outcomes of what was posted and one more try at what was abandoned. Waits
  /// for that until `until` at most. A thread that goes on then reports nothing any more. The second
  /// call does nothing.
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
  PostedOutcomes posted_;
  const std::shared_ptr<LossInbox> inbox_;
  Relay threads_;  // that renew, release and check
};

}  // namespace lockkeeper::detail
