#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lock/keeper/lease_table.h"
#include "lock/keeper/unawaited_releases.h"
#include "lockkeeper/driver/losses.h"

namespace lockkeeper::detail {

/// Whether the store may have forgotten what it has said, because another server has taken the place of the
/// one that said it. Then all leases are asked for again, and what was released lately is released again. If
/// the driver cannot find out by its calls alone, it is asked to check now and then. Thread-safe; functions
/// need no mutex held unless they say so.
class FailoverDoubt {
 public:
  /// `driver` is null when it has no doubts. `mutex` is the keeper's; `wakeUpAt` is called with it held, when
  /// something falls due sooner than due() has said before.
  FailoverDoubt(DoubtReporting* driver, LeaseTable& leases, UnawaitedReleases& releases,
                std::shared_ptr<Clock> clock, std::chrono::nanoseconds operationTimeout, std::mutex& mutex,
                std::function<void(Instant)> wakeUpAt);

  /// Asks the driver how often it wants to check. Once, with the keeper's mutex held, before leases are kept.
  void start();

  /// Whether the store has not confirmed the lease since the last doubt arose.
  bool isAbout(const Lease& lease) const { return isSince(lease.confirmedFrom); }
  /// Whether a doubt has arisen since then.
  bool isSince(Instant asked) const { return asked < lastDoubt_.load(); }

  /// A lease is kept from now on.
  void leaseAdded();
  /// The store has confirmed the release that began at lease.releasedAt. Should a doubt arise, the key is
  /// released again.
  void leaseFreed(Lease& lease) noexcept;

  /// A doubt arises. With the keeper's mutex held.
  void arise() noexcept;
  /// The lease is to be asked for again `now`. With the mutex of its part held, which keeps room for that.
  static void askAgain(LeaseTable::Part& part, Lease& lease, Instant now) noexcept;

  /// When the driver has to check. With the keeper's mutex held.
  Instant due() const { return nextCheck_; }
  /// Lets it check. Lets go of the keeper's mutex `held` meanwhile.
  void check(std::unique_lock<std::mutex>& held);

 private:
  void planCheck(Instant now);

  DoubtReporting* const driver_;
  LeaseTable& leases_;
  UnawaitedReleases& releases_;
  const std::shared_ptr<Clock> clock_;
  const std::chrono::nanoseconds operationTimeout_;
  std::mutex& mutex_;
  const std::function<void(Instant)> wakeUpAt_;
  std::optional<std::chrono::milliseconds> checkEvery_;  // does not change after start()
  std::atomic<Instant> lastDoubt_ = Instant::min();  // what was confirmed before has to be confirmed again

  std::vector<std::shared_ptr<Lease>> freed_;  // the last ones, in a ring
  std::size_t nextFreed_ = 0;
  Instant checkUntil_ = Instant::min();  // for the sake of what was released
  Instant nextCheck_ = Instant::max();
  bool checking_ = false;
};

}  // namespace lockkeeper::detail
