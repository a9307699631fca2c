#include "lock/claim_move.h"

#include "store/claim.h"

namespace lockkeeper::etcd {

namespace {

// Each of the others was beaten by a late move of the same claim, of which there are few.
constexpr int mostMoves = 4;

}  // namespace

bool move(EtcdStore& store, Leases& leases, const HeldClaims& held, Entry own, const Lease& lease,
          Instant deadline) {
  for (int tries = 0; tries < mostMoves; ++tries) {
    const TransactionReply reply =
        leases.attach(own.key, lease,
                      {.compares = unchangedSince(own.key, own.created, own.modified),
                       .then = {put(own.key, asGranted(own.value), lease.id)},
                       .otherwise = {get(own.key)}},
                      deadline);
    if (reply.succeeded) {
      // A claim that is not held yet waited on a lease that others share, or on one in doubt, which is ended.
      if (held.createdAt(own.key) == own.created) leases.end(own.lease);
      return true;
    }
    const auto& found = reply.found[0];
    if (found.empty() || found[0].created != own.created) {
      leases.end(lease.id);
      return false;
    }
    own = found[0];
  }
  leases.end(lease.id);
  throw OutcomeUnknown(store.name() + ": the claim changes again and again");
}

Granted grantAgain(EtcdStore& store, Leases& leases, const HeldClaims& held, const Entry& own,
                   const Lease& lease, Instant deadline) {
  if (!move(store, leases, held, own, lease, deadline)) {
    throw OutcomeUnknown(store.name() + ": the claim was removed while it was asked for again");
  }
  return {lease.from, lease.length, static_cast<Fence>(own.created)};
}

}  // namespace lockkeeper::etcd
