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

/// Doubts what the store has confirmed when another server may have taken its place, which may lack it. Then
/// all leases are asked for again, and recent releases are sent again. If the driver cannot notice a failover
/// by its calls alone, it is asked to check now and then. Thread-safe; functions need no mutex held unless
/// they say so.
class FailoverDoubt {
 public:
  /// `driver` is null when it has no doubts. `mutex` is the keeper's; `wakeUpAt` is called with it held, when
  /// something falls due sooner than due() has said before.
  FailoverDoubt(DoubtReporting* driver, LeaseTable& leases, UnawaitedReleases& releases,
                std::shared_ptr<Clock> clock, std::chrono::nanoseconds operationTimeout, std::mutex& mutex,
                std::function<void(Instant)> wakeUpAt);

  /// Asks the driver how often it wants to check. To be called once, before leases are kept, with the
  /// keeper's mutex held.
  void start();

  /// Whether a doubt has arisen since the store confirmed the lease last.
  bool isAbout(const Lease& lease) const { return isSince(lease.confirmedFrom); }
  /// Whether a doubt has arisen since then.
  bool isSince(Instant asked) const { return asked < lastDoubt_.load(); }

  /// A lease is kept from now on.
  void leaseAdded();
  /// The store has confirmed the release that began at lease.heldUntil(). If a doubt arises soon, the key is
  /// released again.
  void leaseFreed(Lease& lease) noexcept;

  /// A doubt arises. With the keeper's mutex held.
  void arise() noexcept;
  /// Has the lease asked for again `now`. With the mutex of its part held. Needs no memory.
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
  std::atomic<Instant> lastDoubt_ = Instant::min();      // what was confirmed before that is in doubt

  std::vector<std::shared_ptr<Lease>> freed_;  // the leases that were released last, in a ring
  std::size_t nextFreed_ = 0;
  Instant checkUntil_ = Instant::min();  // even if no lease is kept: until then releases may get lost
  Instant nextCheck_ = Instant::max();
  bool checking_ = false;
};

}  // namespace lockkeeper::detail
