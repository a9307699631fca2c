#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lock/lease.h"
#include "lock/lease_keeper.h"
#include "lock/local_queue.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/fork_guard.h"
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
  /// The lock, or nothing: busy for all of terms.waitFor, or stopped.
  std::optional<Lock> acquire(std::string_view key, const LockTerms& terms);
  void renew(Lease& lease);

  /// Lets go of `engine`. Whoever is the last to do so waits until `until` at most for the manager's threads.
  static void leave(std::shared_ptr<Engine>&& engine, Instant until) noexcept;

  /// The call `began` just now.
  /// Unless it is `awaited`, the outcome is waited for only where the store cannot do otherwise; the result
  /// says nothing then, and the listener hears of it.
  ReleaseResult release(Lease& lease, Instant began, bool awaited = true) noexcept;
  ReleaseResult releaseHeldFor(Lease& lease, Instant began, std::chrono::milliseconds atLeast) noexcept;

  /// Ends all waits of acquire(), and those that come.
  void stop() noexcept;
  bool stopped() const noexcept { return stop_.stop_requested(); }

  std::optional<Holder> holder(std::string_view key);
  std::size_t suspectLocks() const { return keeper_->suspects(); }
  Promises promises() const { return driver_->promises(); }
  const ManagerOptions& options() const noexcept { return options_; }
  const std::shared_ptr<LeaseKeeper>& keeper() const noexcept { return keeper_; }
  Instant now() const noexcept { return options_.environment.clock->now(); }
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
  bool claim(Lease& lease, Call& call);
  AcquireResult acquireWaiting(const AcquireRequest& request, const Call& call);
  bool accept(Lease& lease, const Granted& granted);
  void endWithoutTurn(std::string_view key, const Call& call, LocalQueue::Answer known) const;
  void tellBusy(std::string_view key, const Call& call) const;
  void tellEnd(EventKind kind, std::string_view key, const Call& call, const Error* error = nullptr) const;
  /// How a release has ended.
  struct Released;

  Released sendRelease(Lease& lease, Instant began, bool wasValid);
  Released sendLastRenewal(Lease& lease, std::chrono::milliseconds rest);
  bool handOver(Lease& lease, Instant began) noexcept;
  void endRelease(Lease& lease, const Released& released, bool foundLost);
  void keep(Lease& lease);
  void giveBack(const Lease& lease) noexcept;
  void tellFailure(const Lease& lease, Instant began, const Error& error) const;

  const ForkGuard forkGuard_;
  const ManagerOptions options_;
  const std::shared_ptr<LockDriver> driver_;
  Waitable* const waitable_;          // null when the driver cannot
  WaiterReporting* const reporting_;  // null when the driver does not report
  const std::string store_;           // its name in events
  LocalQueue queue_;
  std::stop_source stop_;
  const std::shared_ptr<LeaseKeeper> keeper_;
};

}  // namespace lockkeeper::detail
