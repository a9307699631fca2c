#include "lock/claim_move.h"

#include "store/claim.h"

namespace lockkeeper::etcd {

namespace {

// Each of the others was beaten by a late move of the same claim, of which there are few.
constexpr int mostMoves = 4;

}  // namespace

bool move(EtcdStore& store, Leases& leases, Entry& own, const Lease& lease, Instant deadline) {
  for (int tries = 0; tries < mostMoves; ++tries) {
    const TransactionReply reply =
        leases.attach(own.key, lease,
                      {.compares = unchangedSince(own.key, own.created, own.modified),
                       .then = {put(own.key, asGranted(own.value), lease.id)},
                       .otherwise = {get(own.key)}},
                      deadline);
    if (reply.succeeded) return true;
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

}  // namespace lockkeeper::etcd
