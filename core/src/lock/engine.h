#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lock/lease.h"
#include "lock/lease_keeper.h"
#include "lock/local_queue.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper::detail {

/// What a LockManager and its Locks share: takes, renews and releases leases. Thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::shared_ptr<LockDriver> driver, ManagerOptions options);
  Engine(const Engine&) = delete;
  ~Engine();

  /// The lock, or nothing: busy for all of options.waitFor, or stopped.
  std::optional<Lock> acquire(std::string_view key, const LockOptions& options);
  void renew(Lease& lease);
  ReleaseResult release(Lease& lease) noexcept;
  ReleaseResult releaseHeldFor(Lease& lease, std::chrono::milliseconds atLeast) noexcept;
  bool stillRuns(Lease& lease) { return keeper_->stillRuns(lease); }

  std::optional<Holder> holder(std::string_view key);
  Promises promises() const { return driver_->promises(); }
  const ManagerOptions& options() const noexcept { return options_; }
  Instant now() const noexcept { return options_.environment.clock->now(); }

 private:
  /// True in a forked child: everything here is the parent's.
  bool inherited() const noexcept;
  void refuseInherited() const;
  std::string fullKey(std::string_view key) const;

  bool claim(Lease& lease, const LockOptions& options, Instant waitUntil);
  AcquireResult attempt(const AcquireRequest& request, Instant waitUntil, const std::stop_token& stop);
  bool accept(Lease& lease, const Granted& granted, const LockOptions& options);
  ReleaseResult sendRelease(Lease& lease, bool wasValid);
  ReleaseResult sendLastRenewal(Lease& lease, std::chrono::milliseconds rest);
  void letGo(Lease& lease, bool foundLost);
  void giveBack(const Lease& lease);
  void reportFailure(const Lease& lease, const Error& error);

  const std::uint64_t generation_;
  const ManagerOptions options_;
  const std::shared_ptr<LockDriver> driver_;
  Waitable* const waitable_;  // the driver itself, when it can wait
  LocalQueue queue_;
  std::atomic<bool> storeFails_ = false;  // the latest attempt, of whatever key, got no answer
  const std::shared_ptr<LeaseKeeper> keeper_;
};

}  // namespace lockkeeper::detail
