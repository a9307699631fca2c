#pragma once

#include "lease/held_claims.h"
#include "lease/leases.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::etcd {

/// Moves a claim, which is `own` in the store, to `lease`, which is new; it is granted then. Its former lease
/// is ended if it was its own. False: the claim is not there any more, and `lease` is ended. Throws as
/// Leases::attach(); the claim may then be on either lease.
///
/// An earlier move that comes late finds the claim changed and does nothing.
bool move(EtcdStore& store, Leases& leases, const HeldClaims& held, Entry own, const Lease& lease,
          Instant deadline);

/// The same for a claim that is asked for again and has its turn: its grant. Throws OutcomeUnknown, too, when
/// the claim is not there any more.
Granted grantAgain(EtcdStore& store, Leases& leases, const HeldClaims& held, const Entry& own,
                   const Lease& lease, Instant deadline);

}  // namespace lockkeeper::etcd
