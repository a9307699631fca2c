#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lock/claim_steps.h"
#include "lock/keeper/lease_keeper.h"
#include "lock/lease/lease.h"
#include "lock/lease/local_queue.h"
#include "lock/told_failures.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper::detail {

/// What a LockManager and its Locks share: takes, renews and releases leases. Thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::shared_ptr<LockDriver> driver, ManagerOptions options);
  Engine(const Engine&) = delete;
  ~Engine();

  /// The terms of a call with `options`. Throws std::invalid_argument.
  LockTerms termsOf(const LockOptions& options, std::chrono::milliseconds unnamedWait) const {
    return detail::termsOf(options, options_.lock, unnamedWait);
  }
  /// What acquireFree() has taken.
  struct Claimed {
    std::vector<Lock> locks;  ///< The locks of the first keys.
    bool nextIsBusy = false;  ///< The store says that the key after them is busy.
  };
  /// Claims as many of `keys` as are free, from the first one on, in one call of the driver. Claims none if
  /// the driver is not Batchable, or if the store fails before `until`, when the caller gives up. Throws the
  /// store's error if it fails later, or if another attempt is of no use; then no key is held.
  Claimed acquireFree(std::span<const std::string_view> keys, const LockTerms& terms, Instant until);

  /// From now on the lock is renewed and held as `terms` say. Until now it was kept while the caller waited
  /// for other keys.
  void startHolding(const Lock& lock, const LockTerms& terms) { keeper_->startHolding(*lock.lease_, terms); }

  /// LeaseKeeper::loseTogether(), for a lock that the application has not got yet.
  void loseTogether(const Lock& lock, const std::stop_source& all) {
    keeper_->loseTogether(*lock.lease_, all);
  }

  /// Waits for the lock. Returns nothing if it was busy for all of terms.waitFor, or if the call was stopped.
  std::optional<Lock> acquire(std::string_view key, const LockTerms& terms);
  void renew(Lease& lease);

  /// Drops a reference to `engine`. If it is the last one, waits for the manager's threads, until `until` at
  /// most. If the last two are dropped at the same time, the wait is one operationTimeout at most.
  static void leave(std::shared_ptr<Engine>&& engine, Instant until) noexcept;

  /// Releases the lease; the caller has asked for it at `began`. If nobody waits for the outcome (not
  /// `awaited`) and the driver is Postable, the call returns before the store has answered: the result says
  /// nothing then, and the listener is told the outcome. After `until` the call does not ask the store: the
  /// manager does so in the background.
  ReleaseResult release(Lease& lease, Instant began, Instant until, bool awaited = true) noexcept;
  ReleaseResult releaseHeldFor(Lease& lease, Instant began, std::chrono::milliseconds atLeast) noexcept;
  /// Releases all locks, the last one first, in one request if the driver is BatchReleasing. Returns the
  /// worst result.
  ReleaseResult releaseAll(std::span<Lock> locks, Instant until, bool awaited) noexcept;

  /// Ends all waits of acquire(), present and future ones.
  void stop() noexcept;
  bool stopped() const noexcept { return stop_.stop_requested(); }

  std::optional<Holder> holder(std::string_view key);
  /// Throws ConfigError, with the reason, if the store has no shares.
  Permits& permits() const;
  std::vector<Holder> shareHolders(std::string_view key);
  bool resize(std::string_view key, std::uint32_t limit);
  std::optional<OwnerToken> ownerToken(const Lock& held);
  std::size_t suspectLocks() const { return keeper_->suspects(); }
  Promises promises() const { return driver_->promises(); }
  const ManagerOptions& options() const noexcept { return options_; }
  /// In a forked child the clock is not asked: a thread of the parent may have had its mutex.
  Instant now() const noexcept {
    return forkGuard_.inherited() ? Instant::min() : options_.environment.clock->now();
  }
  /// When a call that began at `began` has to end.
  Instant callEnd(Instant began) const noexcept { return began + options_.operationTimeout; }

 private:
  void refuseInherited() const;
  std::string fullKey(std::string_view key) const;

  /// What stays the same during one call of acquire(), and how many attempts it has made.
  struct Call;

  LocalQueue::Entered enter(std::shared_ptr<Lease>& lease, Call& call);
  bool startsWell(Lease& lease, Call& call);
  bool renewFirst(Lease& lease, Call& call);
  Instant latestEnd(const Call& call) const;
  class ClaimedToken;
  struct Attempt;
  bool claim(Lease& lease, Call& call, bool atOnce);
  void tryOnce(Lease& lease, Call& call, ClaimSteps& steps, Attempt& attempt);
  void takeGrant(Lease& lease, const Call& call, ClaimSteps& steps, const Granted& granted, Attempt& attempt);
  void pauseBetween(Lease& lease, const Call& call, ClaimSteps& steps, Backoff& backoff, const Attempt& last);
  void tellLine(Lease& lease, LocalQueue::Answer answer, Attempt& attempt);
  ClaimSteps::Time timeLeft(const Call& call, const Attempt& last) const;
  Instant outageEnd(const Call& call, const Attempt& last) const;
  Instant latestAnswer(const Call& call, const Attempt& last) const;
  AcquireResult acquireWaiting(const AcquireRequest& request, const Call& call);
  bool accept(Lease& lease, const Granted& granted);
  Lock held(std::shared_ptr<Lease> lease, Instant began, int attempts);
  std::vector<std::shared_ptr<Lease>> enterFree(std::span<const std::string_view> keys,
                                                const LockTerms& terms);
  std::vector<AcquireResult> claimInOrder(std::span<const std::shared_ptr<Lease>> leases, Call& call);
  void endWithoutTurn(std::string_view key, const Call& call, LocalQueue::Answer known) const;
  void tellBusy(std::string_view key, const Call& call) const;
  void tellEnd(EventKind kind, std::string_view key, const Call& call, const Error* error = nullptr) const;
  /// The outcome of a release.
  struct Released;
  /// A release that is under way.
  struct Releasing;

  std::optional<ReleaseResult> beginRelease(Releasing& each, Instant began, bool awaited) noexcept;
  void sendReleases(std::span<Releasing> all, std::span<const Claim> claims, Instant began, Instant until);
  void askRelease(std::span<Releasing> all, std::span<const Claim> claims, Instant until);
  ReleaseResult finishRelease(Releasing& each);
  bool releaseTogether(std::span<Lock> locks, Instant began, Instant until, bool awaited,
                       ReleaseResult& worst);
  Released sendLastRenewal(Lease& lease);
  bool handOver(Lease& lease, Instant began) noexcept;
  void endRelease(Lease& lease, const Released& released, bool foundLost);
  void keep(Lease& lease);
  /// Releases the lease's claim in the background: the store may have granted it, and nobody uses it.
  void withdraw(const Lease& lease) noexcept;
  void tellFailure(const Lease& lease, Instant began, const Error& error) const;

  mutable ToldFailures toldFailures_;
  const ForkGuard forkGuard_;
  const ManagerOptions options_;
  const std::shared_ptr<LockDriver> driver_;
  Waitable* const waitable_;         // null when the driver cannot
  Permits* const permits_;           // null when the driver has none
  Batchable* const batchable_;       // null when the driver cannot
  BatchReleasing* const releasing_;  // null when the driver cannot
  const std::string store_;          // its name in events
  LocalQueue queue_;
  std::stop_source stop_;
  const std::shared_ptr<LeaseKeeper> keeper_;
  const std::shared_ptr<const LeaseContext> context_;
};

}  // namespace lockkeeper::detail
