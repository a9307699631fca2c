#pragma once

#include <span>

#include "lease/held_claims.h"
#include "lease/leases.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::etcd {

/// Renews claims: first it looks whether each still holds its lock, since a lease outlives a key that
/// somebody has removed, then it keeps the leases alive. A claim that asks for another ttl than its lease
/// has gets a new lease.
class RenewalRound {
 public:
  RenewalRound(EtcdStore& store, Leases& leases, HeldClaims& held)
      : store_(store), leases_(leases), held_(held) {}

  /// As LockDriver::renew().
  void renew(std::span<Renewal> renewals, Instant deadline);

 private:
  struct Look;

  void renewSome(std::span<Renewal> renewals, std::span<Look> looks, Instant deadline);
  void look(std::span<Renewal> renewals, std::span<Look> looks, Instant deadline);
  void keep(std::span<Renewal> renewals, std::span<Look> looks, Instant deadline);
  void settle(Renewal& renewal, const Look& look, const KeptLease& kept, Instant deadline);
  void replaceLease(Renewal& renewal, const Look& look, Instant deadline);

  EtcdStore& store_;
  Leases& leases_;
  HeldClaims& held_;
};

}  // namespace lockkeeper::etcd
