#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lock/keeper/failover_doubt.h"
#include "lock/keeper/unawaited_releases.h"
#include "lock/lease/lease.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::detail {

/// Posts the releases of leases that have ended, and tells the listener how each release has ended.
/// Thread-safe; needs no mutex held.
class PostedOutcomes {
 public:
  /// `mutex` is the keeper's.
  PostedOutcomes(const Environment& environment, std::string store, UnawaitedReleases& releases,
                 FailoverDoubt& doubt, std::mutex& mutex);

  /// False: not sent.
  bool post(Lease& lease) noexcept { return releases_.post(lease.claim(), lease.shared_from_this()); }

  // The outcome, from the driver.
  void answered(Lease& lease, ReleaseOutcome outcome) noexcept;
  void failed(Lease& lease, ErrorCode code, std::string_view text) noexcept;

 private:
  void tell(const Lease& lease, Instant ended, bool foundLost, std::optional<ErrorCode> error = {});

  const Environment environment_;
  const std::string store_;  // its name in events
  UnawaitedReleases& releases_;
  FailoverDoubt& doubt_;
  std::mutex& mutex_;
};

}  // namespace lockkeeper::detail
