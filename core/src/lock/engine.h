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

  /// What a call means by `options`. Throws std::invalid_argument.
  LockTerms termsOf(const LockOptions& options, std::chrono::milliseconds unnamedWait) const {
    return detail::termsOf(options, options_.lock, unnamedWait);
  }
  /// How far an attempt at several keys came.
  struct Claimed {
    std::vector<Lock> locks;  ///< Of the first ones.
    bool nextIsBusy = false;  ///< The store says so of the one after them.
  };
  /// Claims as many of `keys` as are free, from the first one on, in one call of the driver: none, where it
  /// cannot do that, and where the store fails before `until`, when the caller gives up. Throws what it fails
  /// with after that, or what is no use to try again; then none is held.
  Claimed acquireFree(std::span<const std::string_view> keys, const LockTerms& terms, Instant until);

  /// For a lock that was kept while others were waited for: from now on it is renewed, and held for as long,
  /// as `terms` say.
  void startHolding(const Lock& lock, const LockTerms& terms) { keeper_->startHolding(*lock.lease_, terms); }

  /// As LeaseKeeper::loseTogether(), before the caller of acquire() gets the lock.
  void loseTogether(const Lock& lock, const std::stop_source& all) {
    keeper_->loseTogether(*lock.lease_, all);
  }

  /// The lock, or nothing: busy for all of terms.waitFor, or stopped.
  std::optional<Lock> acquire(std::string_view key, const LockTerms& terms);
  void renew(Lease& lease);

  /// Lets go of `engine`. Whoever is the last to do so waits until `until` at most for the manager's threads;
  /// for a new operationTimeout when others let go of it at the same time.
  static void leave(std::shared_ptr<Engine>&& engine, Instant until) noexcept;

  /// The call `began` just now.
  /// Unless it is `awaited`, the outcome is waited for only where the store cannot do otherwise; the result
  /// says nothing then, and the listener hears of it.
  /// After `until` the store is not asked any more: the manager does so in the background.
  ReleaseResult release(Lease& lease, Instant began, Instant until, bool awaited = true) noexcept;
  ReleaseResult releaseHeldFor(Lease& lease, Instant began, std::chrono::milliseconds atLeast) noexcept;
  /// As release() for each of the locks, the last one first, in one request where the driver can do that.
  /// Returns the worst result.
  ReleaseResult releaseAll(std::span<Lock> locks, Instant until, bool awaited) noexcept;

  /// Ends all waits of acquire(), and those that come.
  void stop() noexcept;
  bool stopped() const noexcept { return stop_.stop_requested(); }

  std::optional<Holder> holder(std::string_view key);
  /// Throws ConfigError, with the reason, when the store does not count them.
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
  /// By when a call that began then ends.
  Instant callEnd(Instant began) const noexcept { return began + options_.operationTimeout; }

 private:
  void refuseInherited() const;
  std::string fullKey(std::string_view key) const;

  /// One call of acquire(), as events tell of it.
  struct Call;

  LocalQueue::Entered enter(std::shared_ptr<Lease>& lease, Call& call);
  bool startsWell(Lease& lease, Call& call);
  bool renewFirst(Lease& lease, Call& call);
  Instant latestEnd(const Call& call) const;
  class ClaimedToken;
  struct Attempt;
  bool claim(Lease& lease, Call& call, bool atOnce);
  void tryOnce(Lease& lease, Call& call, ClaimSteps& steps, Attempt& attempt);
  void takeGrant(Lease& lease, const Call& call, ClaimSteps& steps, const Granted& granted,
                 std::uint32_t askedTurns, Attempt& attempt);
  void pauseBetween(Lease& lease, const Call& call, ClaimSteps& steps, Backoff& backoff, const Attempt& last);
  void tellLine(Lease& lease, LocalQueue::Answer answer, Attempt& attempt);
  ClaimSteps::Time timeLeft(const Call& call, const Attempt& last) const;
  Instant outageEnd(const Call& call, const Attempt& last) const;
  Instant latestAnswer(const Call& call, const Attempt& last) const;
  AcquireResult acquireWaiting(const AcquireRequest& request, const Call& call);
  bool accept(Lease& lease, const Granted& granted, std::uint32_t askedTurns);
  Lock held(std::shared_ptr<Lease> lease, Instant began, int attempts);
  std::vector<std::shared_ptr<Lease>> enterFree(std::span<const std::string_view> keys,
                                                const LockTerms& terms);
  std::vector<AcquireResult> claimInOrder(std::span<const std::shared_ptr<Lease>> leases, Call& call);
  void endWithoutTurn(std::string_view key, const Call& call, LocalQueue::Answer known) const;
  void tellBusy(std::string_view key, const Call& call) const;
  void tellEnd(EventKind kind, std::string_view key, const Call& call, const Error* error = nullptr) const;
  /// How a release has ended.
  struct Released;
  /// One that is under way.
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
  /// Releases in the background what the store may have granted to the lease's claim, which nobody uses.
  void withdraw(const Lease& lease) noexcept;
  void tellFailure(const Lease& lease, Instant began, const Error& error) const;

  const ForkGuard forkGuard_;
  const ManagerOptions options_;
  const std::shared_ptr<LockDriver> driver_;
  Waitable* const waitable_;          // null when the driver cannot
  Permits* const permits_;            // null when the driver has none
  Batchable* const batchable_;        // null when the driver cannot
  BatchReleasing* const releasing_;   // null when the driver cannot
  const std::string store_;           // its name in events
  LocalQueue queue_;
  std::stop_source stop_;
  const std::shared_ptr<LeaseKeeper> keeper_;
  const std::shared_ptr<const LeaseContext> context_;
};

}  // namespace lockkeeper::detail
