#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lease/held_claims.h"
#include "lease/leases.h"
#include "line/claim_line.h"
#include "lockkeeper/driver/driver.h"
#include "queue/claim_queue.h"

namespace lockkeeper::etcd {

/// Claims of shares, and how many permits a key has. Thread-safe.
///
/// A claim enters as one that is granted and then looks whether it has room, since no compare of etcd's
/// counts keys; one that has none is withdrawn. So that few are, a key that had no room is looked at before.
class ShareClaims {
 public:
  ShareClaims(EtcdStore& store, Leases& leases, ClaimQueue& queue, const HeldClaims& held)
      : store_(store), leases_(leases), queue_(queue), held_(held) {}

  /// As LockDriver::acquire().
  AcquireResult claim(const AcquireRequest& request);

  /// As Permits::resize().
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline);

 private:
  struct Census;

  std::vector<std::string> withCensus(std::string first, const Claim& claim) const;
  Census censusIn(const TransactionReply& reply, const Claim& claim, bool entered) const;
  std::optional<Granted> claimOnce(const AcquireRequest& request);
  bool wasFull(std::string_view key) const;
  void noteFull(std::string_view key, bool full);
  std::optional<Granted> enter(const AcquireRequest& request);
  std::optional<Granted> grantAgain(const AcquireRequest& request, const Entry& own);
  std::optional<Granted> goAhead(const AcquireRequest& request);
  bool changeLimits(std::string_view key, std::uint32_t limit, Instant deadline, bool& changed);
  bool rewrite(std::span<const LineClaim> claims, std::uint32_t limit, Instant deadline);

  EtcdStore& store_;
  Leases& leases_;
  ClaimQueue& queue_;
  const HeldClaims& held_;
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> full_;  // keys that had no room for the last claim which has entered
};

}  // namespace lockkeeper::etcd
