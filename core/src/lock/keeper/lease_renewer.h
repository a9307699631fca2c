#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "lock/keeper/failover_doubt.h"
#include "lock/keeper/lease_table.h"
#include "lock/keeper/loss_teller.h"
#include "lock/keeper/unawaited_releases.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::detail {

/// Renews the leases that are due, in groups, and changes each lease by its outcome. Thread-safe; functions
/// need no mutex held unless they say so.
class LeaseRenewer {
 public:
  /// `mutex` is the keeper's. `planned` is called, without it, with the time of each renewal that is planned.
  LeaseRenewer(std::shared_ptr<LockDriver> driver, const Environment& environment, LeaseTable& leases,
               LossTeller& losses, FailoverDoubt& doubt, UnawaitedReleases& releases,
               std::chrono::nanoseconds operationTimeout, std::mutex& mutex,
               std::function<void(Instant)> planned);

  /// Renews the leases that are due now or soon. Unlocks the keeper's mutex `held` meanwhile.
  void renewDue(std::unique_lock<std::mutex>& held);

  /// Applies the outcome of one renewal, which began at `began`, to its lease. True if the lease was renewed.
  bool renewed(Lease& lease, const Renewal& renewal, Instant began);

 private:
  struct Group;

  Group takeDue(Instant now);
  void applyOutcome(Lease& lease, const Renewal& renewal, Instant now);
  void tellOutcome(const Lease& lease, const Renewal& renewal, Instant began, Instant ended, Instant end);
  void endInTime(const Lease& lease, RenewOutcome outcome);

  const std::shared_ptr<LockDriver> driver_;
  const std::string store_;  // its name in events
  const Environment environment_;
  LeaseTable& leases_;
  LossTeller& losses_;
  FailoverDoubt& doubt_;
  UnawaitedReleases& releases_;
  const std::chrono::nanoseconds operationTimeout_;
  std::mutex& mutex_;
  const std::function<void(Instant)> planned_;
  std::size_t firstPart_ = 0;  // of the next group
};

}  // namespace lockkeeper::detail
