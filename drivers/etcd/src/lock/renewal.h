#pragma once

#include <span>

#include "lease/held_claims.h"
#include "lease/leases.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::etcd {

/// Renews claims. First it reads whether each still holds its lock, since a lease outlives a key that
/// somebody has removed; then it keeps the leases alive. A claim that asks for another ttl than its lease has
/// gets a new lease.
class RenewalRound {
 public:
  RenewalRound(EtcdStore& store, Leases& leases, HeldClaims& held)
      : store_(store), leases_(leases), held_(held) {}

  /// As LockDriver::renew().
  void renew(std::span<Renewal> renewals, Instant deadline);

 private:
  struct Stored;

  void renewSome(std::span<Renewal> renewals, std::span<Stored> stored, Instant deadline);
  void readClaims(std::span<Renewal> renewals, std::span<Stored> stored, Instant deadline);
  void keep(std::span<Renewal> renewals, std::span<Stored> stored, Instant deadline);
  void settle(Renewal& renewal, const Stored& stored, const KeptLease& kept, Instant deadline);
  void replaceLease(Renewal& renewal, const Stored& stored, Instant deadline);

  EtcdStore& store_;
  Leases& leases_;
  HeldClaims& held_;
};

}  // namespace lockkeeper::etcd
