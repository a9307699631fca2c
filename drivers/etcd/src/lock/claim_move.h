#pragma once

#include "lease/leases.h"

namespace lockkeeper::etcd {

/// Moves a claim, which is `own` in the store, to `lease`, which is new; it is granted then. Afterwards `own`
/// is the claim as it was before that. False: it is not there any more, and the lease is ended. Throws as
/// Leases::attach(); the claim may then be on either lease.
///
/// An earlier move that comes late finds the claim changed and does nothing.
bool move(EtcdStore& store, Leases& leases, Entry& own, const Lease& lease, Instant deadline);

}  // namespace lockkeeper::etcd
