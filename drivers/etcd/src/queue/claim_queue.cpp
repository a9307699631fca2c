#include "queue/claim_queue.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"
#include "store/claim.h"

namespace lockkeeper::etcd {

namespace {

using std::chrono::milliseconds;

// A waiter looks by itself after `longest` at most, and up to `spread` earlier, so that waiters do not march
// in step.
struct Looks {
  milliseconds longest;
  milliseconds spread;

  milliseconds next(Random& random) const {
    return longest - milliseconds(random.upTo(static_cast<std::uint64_t>(spread.count())));
  }
};

// With the stream, which a gateway may have dropped without a word, and without.
constexpr Looks lookAtTimes{milliseconds{4000}, milliseconds{1000}};
constexpr Looks lookOften{milliseconds{250}, milliseconds{125}};

// Each attempt to leave but the first was beaten by a late transaction of the same claim, of which there are
// few.
constexpr int mostTries = 4;

}  // namespace

/// A claim in the queue.
struct ClaimQueue::Place {
  const std::string key;
  const std::string value;
  const KeyRange claims;
  std::int64_t created = 0;  // 0: it is not in the queue
  std::int64_t modified = 0;
  std::int64_t lease = 0;     // on which it is, or may be
  std::string predecessor{};  // empty: it is the first
};

/// One who waits, and until when.
struct ClaimQueue::Wait {
  const AcquireRequest& request;
  const Instant until;
  const std::stop_token& stop;
  EtcdStore& store;
  WakeUps::Waiter waiter;
  Instant entered = Instant::min();

  bool over() const { return stop.stop_requested() || store.clock().now() >= until; }

  /// When the last call must have ended.
  Instant end() const {
    return saturatingAdd(std::max(entered, std::min(until, waiter.stoppedAt())), store.options().ioTimeout);
  }
  Instant callEnd() const { return std::min(store.oneTimeout(), end()); }
};

AcquireResult ClaimQueue::wait(const AcquireRequest& request, Instant until, const std::stop_token& stop) {
  if (stop.stop_requested() || store_.clock().now() >= until) return Busy{};
  Place place{.key = store_.keyOf(request.claim),
              .value = valueOf(request.claim),
              .claims = store_.claimsOf(request.claim.key)};
  Wait wait{.request = request,
            .until = until,
            .stop = stop,
            .store = store_,
            .waiter = {wakeUps_, place.key, stop}};
  try {
    if (const auto granted = waitIn(place, wait)) return *granted;
    leave(place, wait.end());
    leases_.endDoubted(place.key, wait.end());
    return Busy{};
  } catch (const StoreUnavailable& error) {
    if (place.created == 0) throw;
    waitingLease_.leftBehind(place.key, place.lease);
    throw OutcomeUnknown(std::string(error.what()) + "; the claim may still be in the queue");
  } catch (const Error& error) {
    // A caller who is told anything else does not ask again, nor releases the claim.
    const bool doubt = error.code() == ErrorCode::outcomeUnknown || error.code() == ErrorCode::protocol;
    if (doubt) {
      waitingLease_.leftBehind(place.key, place.lease);
    } else {
      leaveBehind(place);
    }
    throw;
  } catch (...) {
    leaveBehind(place);
    throw;
  }
}

std::optional<Granted> ClaimQueue::waitIn(Place& place, Wait& wait) {
  WakeUps::News news = WakeUps::News::none;
  wait.waiter.begin();
  enter(place, wait.request.deadline);
  wait.entered = store_.clock().now();
  while (true) {
    if (place.created != 0 && place.predecessor.empty() && !wait.stop.stop_requested()) {
      if (const auto granted = confirm(place, wait.request.ttl, wait.callEnd())) return granted;
    }
    if (place.created != 0 && !place.predecessor.empty()) {
      if (place.lease != waitingLease_.current() && !wait.over()) changeLease(place, wait.callEnd());
    }
    if (place.created != 0 && !place.predecessor.empty()) {
      const bool live = wait.waiter.expect(place.predecessor);
      const Looks& looks = live ? lookAtTimes : lookOften;
      const Instant nextLook = saturatingAdd(store_.clock().now(), looks.next(*store_.environment().random));
      news = wait.waiter.wait(std::min(nextLook, wait.until), wait.end());
    } else {
      news = WakeUps::News::look;  // it has lost its place, or somebody has changed it
    }
    if (wait.over()) return std::nullopt;
    wait.waiter.begin();
    if (news == WakeUps::News::predecessorGone) {
      place.predecessor.clear();  // most likely it is the first; otherwise confirm() says who is before it
    } else if (place.created != 0) {
      look(place, wait.callEnd());
    }
    if (place.created == 0 && !wait.over()) enter(place, wait.callEnd());
  }
}

// Who waits on a lease that this has found ended or abandoned must look.
std::int64_t ClaimQueue::sharedLease(Instant deadline) {
  const std::int64_t before = waitingLease_.current();
  const auto tellOthers = [&] {
    if (before != 0 && before != waitingLease_.current()) wakeUps_.lookAll();
  };
  try {
    const std::int64_t lease = waitingLease_.id(deadline);
    tellOthers();
    return lease;
  } catch (...) {
    tellOthers();
    throw;
  }
}

void ClaimQueue::enter(Place& place, Instant deadline) {
  const std::int64_t lease = sharedLease(deadline);
  try {
    const TransactionReply reply =
        store_.execute({.compares = {createdAt({.from = place.key}, 0)},
                        .then = {put(place.key, place.value, lease), getLast(place.claims, 2)},
                        .otherwise = {get(place.key)}},
                       deadline);
    waitingLease_.takenUp(place.key);
    if (reply.succeeded) {
      place.created = place.modified = reply.revision;
      place.lease = lease;
      place.predecessor.clear();
      for (const Entry& each : reply.found[1]) {
        if (each.key != place.key) place.predecessor = each.key;
      }
      return;
    }
    if (reply.found[0].empty()) store_.unexpected();
    place.created = reply.found[0][0].created;
    place.modified = reply.found[0][0].modified;
    place.lease = reply.found[0][0].lease;
  } catch (const StoreUnavailable&) {
    waitingLease_.doubt();  // it may have ended
    throw;
  } catch (const ConfigError&) {
    throw;
  } catch (...) {
    // The transaction may come late, when nobody waits any more: only the end of its lease makes it harmless.
    if (waitingLease_.abandon(lease)) wakeUps_.lookAll();
    throw;
  }
  look(place, deadline);
}

void ClaimQueue::look(Place& place, Instant deadline) {
  const TransactionReply reply = store_.execute(
      {.then = {get(place.key), getLast(place.claims, 1, place.created - 1)}, .effect = Effect::none},
      deadline);
  takeIn(place, reply);
}

// Moves the claim, which keeps its place, to the lease that is kept alive now.
void ClaimQueue::changeLease(Place& place, Instant deadline) {
  const std::int64_t lease = sharedLease(deadline);
  if (lease == place.lease) return;
  place.lease = lease;
  const TransactionReply reply =
      store_.execute({.compares = unchanged(place),
                      .then = {put(place.key, place.value, lease)},
                      .otherwise = {get(place.key), getLast(place.claims, 1, place.created - 1)}},
                     deadline);
  if (reply.succeeded) {
    place.modified = reply.revision;
  } else {
    takeIn(place, reply);
  }
}

// Moves the claim to a lease of its own if it is the first in the queue. An earlier such transaction that
// comes late finds that the claim has changed.
std::optional<Granted> ClaimQueue::confirm(Place& place, milliseconds ttl, Instant deadline) {
  const Lease lease = leases_.grant(ttl, deadline);
  const TransactionReply reply = leases_.attach(
      place.key, lease,
      {.compares = {createdAt({.from = place.key}, place.created), modifiedAt(place.key, place.modified),
                    createdAfter(place.claims, place.created - 1)},
       .then = {put(place.key, place.value, lease.id)},
       .otherwise = {get(place.key), getLast(place.claims, 1, place.created - 1)}},
      deadline);
  if (reply.succeeded) return Granted{lease.from, lease.length, static_cast<Fence>(place.created)};
  leases_.end(lease.id);
  takeIn(place, reply);
  return std::nullopt;
}

// Compares: nothing has been done to the claim since it was seen.
std::vector<std::string> ClaimQueue::unchanged(const Place& place) {
  return {createdAt({.from = place.key}, place.created), modifiedAt(place.key, place.modified)};
}

void ClaimQueue::takeIn(Place& place, const TransactionReply& reply) {
  const auto& own = reply.found[0];
  const auto& before = reply.found[1];
  const bool there = !own.empty() && own[0].created == place.created;
  place.created = there ? place.created : 0;
  place.modified = there ? own[0].modified : 0;
  place.lease = there ? own[0].lease : 0;
  place.predecessor = !there || before.empty() ? std::string() : before[0].key;
}

// A removal that comes late must not take away a claim that has been granted to the same token meanwhile.
void ClaimQueue::leave(Place& place, Instant deadline) {
  if (place.created == 0) return;
  for (int tries = 0; tries < mostTries; ++tries) {
    const TransactionReply reply = store_.execute(
        {.compares = unchanged(place), .then = {remove(place.key)}, .otherwise = {get(place.key)}}, deadline);
    const auto& own = reply.found[0];
    if (reply.succeeded || own.empty() || own[0].created != place.created) return;
    place.modified = own[0].modified;
    place.lease = own[0].lease;
  }
  throw OutcomeUnknown(store_.name() + ": the claim changes again and again");
}

// Without waiting for the answer.
void ClaimQueue::leaveBehind(const Place& place) noexcept {
  if (place.created == 0) return;
  waitingLease_.leftBehind(place.key, place.lease);
  try {
    store_.leave("/v3/kv/txn", transaction(unchanged(place), {remove(place.key)}, {}));
  } catch (const std::exception&) {  // no memory: it ends with its lease
  }
}

}  // namespace lockkeeper::etcd
