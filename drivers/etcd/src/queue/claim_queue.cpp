#include "queue/claim_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "line/claim_line.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/error.h"
#include "lockkeeper/permit/share.h"
#include "store/claim.h"

namespace lockkeeper::etcd {

namespace {

using std::chrono::milliseconds;

/// How often a waiter reads its queue without having heard of a change: after `longest`, or up to `spread`
/// earlier, so that waiters do not do it at the same time.
struct ReadPause {
  milliseconds longest;
  milliseconds spread;

  milliseconds next(Random& random) const {
    return longest - milliseconds(random.upTo(static_cast<std::uint64_t>(spread.count())));
  }
};

// With the stream, which a gateway may have dropped silently, and without it.
constexpr ReadPause pauseWithStream{milliseconds{4000}, milliseconds{1000}};
constexpr ReadPause pauseWithoutStream{milliseconds{250}, milliseconds{125}};

// Each attempt to leave but the first was beaten by a late transaction of the same claim, of which there are
// few.
constexpr int mostTries = 4;

// Two compares and a removal for each; a server takes 128 of either in one transaction.
constexpr std::size_t mostSentBack = 40;

}  // namespace

/// A claim in the queue.
struct ClaimQueue::Place {
  const Claim& claim;
  const bool ahead;
  const std::string key;
  const std::string value;  // while it waits
  const KeyRange claims;
  std::int64_t created = 0;  // 0: it is not in the queue
  std::int64_t modified = 0;
  std::int64_t lease = 0;  // on which it is, or may be
  Obstacles obstacles{};
  bool behindShare = false;                   // and not a share itself
  std::vector<Entry> toSendBack{};            // before its turn can come
  std::optional<std::uint32_t> otherLimit{};  // that those who hold shares have named

  bool waits() const { return created != 0 && (obstacles.needed != 0 || !toSendBack.empty()); }
  bool hasTurn() const { return created != 0 && !waits(); }
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
  return enterAndWait(request, until, stop);
}

AcquireResult ClaimQueue::attempt(const AcquireRequest& request) {
  return enterAndWait(request, store_.clock().now(), {});
}

AcquireResult ClaimQueue::enterAndWait(const AcquireRequest& request, Instant until,
                                       const std::stop_token& stop) {
  Place place{.claim = request.claim,
              .ahead = request.ahead,
              .key = store_.keyOf(request.claim),
              .value = waitingValueOf(request.claim),
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
    waitingLease_.abandoned(place.key, place.lease);
    throw OutcomeUnknown(std::string(error.what()) + "; the claim may still be in the queue");
  } catch (const Error& error) {
    // A caller who is told anything else does not ask again, nor releases the claim.
    const bool doubt = error.code() == ErrorCode::outcomeUnknown || error.code() == ErrorCode::protocol;
    if (doubt) {
      waitingLease_.abandoned(place.key, place.lease);
    } else {
      abandon(place);
    }
    throw;
  } catch (...) {
    abandon(place);
    throw;
  }
}

std::optional<Granted> ClaimQueue::waitIn(Place& place, Wait& wait) {
  WakeUps::News news = WakeUps::News::none;
  wait.waiter.watchAll();
  enter(place, wait.request.deadline);
  wait.entered = store_.clock().now();
  while (true) {
    checkLimit(place, wait.callEnd());
    if (!wait.stop.stop_requested()) sendBack(place, wait.callEnd());
    if (place.hasTurn() && !wait.stop.stop_requested()) {
      if (const auto granted = confirm(place, wait.request.ttl, wait.callEnd())) return granted;
    }
    if (place.waits() && place.lease != waitingLease_.current() && !wait.over()) {
      changeLease(place, wait.callEnd());
    }
    if (place.waits() && place.obstacles.needed != 0) {
      const bool live = wait.waiter.watch(place.obstacles);
      const ReadPause& pause = live ? pauseWithStream : pauseWithoutStream;
      const Instant nextRead = saturatingAdd(store_.clock().now(), pause.next(*store_.environment().random));
      news = wait.waiter.wait(std::min(nextRead, wait.until), wait.end());
    } else {
      news = WakeUps::News::changed;  // it has lost its place, or somebody has changed it
    }
    if (wait.over()) return std::nullopt;
    wait.waiter.watchAll();
    if (news == WakeUps::News::enoughGone && !place.claim.share && !place.behindShare) {
      place.obstacles = {};  // most likely it is the first; otherwise confirm() says who is before it
    } else if (place.created != 0) {
      read(place, wait.callEnd());
    }
    if (place.created == 0 && !wait.over()) enter(place, wait.callEnd());
  }
}

// When it finds that the lease has ended, or gives it up, those who wait on it must read their queues.
std::int64_t ClaimQueue::sharedLease(Instant deadline) {
  const std::int64_t before = waitingLease_.current();
  const auto tellOthers = [&] {
    if (before != 0 && before != waitingLease_.current()) wakeUps_.wakeAll();
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
                        .then = {put(place.key, place.value, lease),
                                 place.claim.share ? firstBefore(place) : getLast(place.claims, 2)},
                        .otherwise = {get(place.key)}},
                       deadline);
    waitingLease_.resumed(place.key);
    if (reply.succeeded) {
      place.created = place.modified = reply.revision;
      place.lease = lease;
      std::vector<Entry> before = reply.found[1];
      std::erase_if(before, [&](const Entry& each) { return each.key == place.key; });
      updateObstacles(place, std::move(before), deadline);
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
    if (waitingLease_.giveUp(lease)) wakeUps_.wakeAll();
    throw;
  }
  read(place, deadline);
}

void ClaimQueue::read(Place& place, Instant deadline) {
  update(place, store_.execute({.then = readOperations(place), .effect = Effect::none}, deadline), deadline);
}

// For update().
std::vector<std::string> ClaimQueue::readOperations(const Place& place) {
  return {get(place.key),
          place.claim.share ? firstBefore(place) : getLast(place.claims, 1, place.created - 1)};
}

// Of a share; of all claims when it is not in the queue yet.
std::string ClaimQueue::firstBefore(const Place& place) {
  const std::int64_t before =
      place.created != 0 ? place.created - 1 : std::numeric_limits<std::int64_t>::max();
  return getAll(place.claims, before, pageFor(*place.claim.share));
}

// Moves the claim, which keeps its place, to the lease that is kept alive now.
void ClaimQueue::changeLease(Place& place, Instant deadline) {
  const std::int64_t lease = sharedLease(deadline);
  if (lease == place.lease) return;
  place.lease = lease;
  const TransactionReply reply = store_.execute({.compares = unchanged(place),
                                                 .then = {put(place.key, place.value, lease)},
                                                 .otherwise = readOperations(place)},
                                                deadline);
  if (reply.succeeded) {
    place.modified = reply.revision;
  } else {
    update(place, reply, deadline);
  }
}

// Moves the claim to a lease of its own if its turn has come. That of a share was seen to, and stays. An
// earlier such transaction that comes late finds that the claim has changed.
std::optional<Granted> ClaimQueue::confirm(Place& place, milliseconds ttl, Instant deadline) {
  std::vector<std::string> compares = unchanged(place);
  if (!place.claim.share) compares.push_back(createdAfter(place.claims, place.created - 1));
  const Lease lease = leases_.grant(ttl, deadline);
  const TransactionReply reply = leases_.attach(place.key, lease,
                                                {.compares = std::move(compares),
                                                 .then = {put(place.key, valueOf(place.claim), lease.id)},
                                                 .otherwise = readOperations(place)},
                                                deadline);
  if (reply.succeeded) return Granted{lease.from, lease.length, static_cast<Fence>(place.created)};
  leases_.end(lease.id);
  update(place, reply, deadline);
  return std::nullopt;
}

// Compares: nothing has been done to the claim since it was seen.
std::vector<std::string> ClaimQueue::unchanged(const Place& place) {
  return unchangedSince(place.key, place.created, place.modified);
}

void ClaimQueue::update(Place& place, const TransactionReply& reply, Instant deadline) {
  const auto& own = reply.found[0];
  const bool there = !own.empty() && own[0].created == place.created;
  place.created = there ? place.created : 0;
  place.modified = there ? own[0].modified : 0;
  place.lease = there ? own[0].lease : 0;
  updateObstacles(place, there ? reply.found[1] : std::vector<Entry>{}, deadline);
}

// `before`: of a share, the first claims before it; of any other claim, the last of them.
void ClaimQueue::updateObstacles(Place& place, std::vector<Entry> before, Instant deadline) {
  place.obstacles = {};
  place.toSendBack.clear();
  place.otherLimit.reset();
  if (!place.claim.share) {
    if (before.empty()) return;
    const auto text = textIn(before[0].value);
    place.behindShare = text && text->share;
    place.obstacles.claims.emplace(before[0].key, Obstacles::Weight{before[0].created, 1});
    place.obstacles.needed = 1;
    return;
  }
  const ClaimLine line = readOn(store_, place.claim.key, std::move(before), *place.claim.share, place.created,
                                place.ahead, deadline);
  place.otherLimit = line.otherLimit(*place.claim.share);
  place.obstacles = line.before(*place.claim.share, place.ahead);
  if (place.ahead && place.obstacles.needed == 0) place.toSendBack = line.waiting();
}

// From the last one on: as long as one waits before them, none of those behind it has its turn. When one of
// them has changed meanwhile, the queue is read again.
void ClaimQueue::sendBack(Place& place, Instant deadline) {
  while (!place.toSendBack.empty() && store_.clock().now() < deadline) {
    const std::size_t rest = place.toSendBack.size() - std::min(place.toSendBack.size(), mostSentBack);
    std::vector<std::string> compares = unchanged(place);
    std::vector<std::string> removals;
    for (std::size_t i = rest; i < place.toSendBack.size(); ++i) {
      const Entry& each = place.toSendBack[i];
      for (std::string& compare : unchangedSince(each.key, each.created, each.modified))
        compares.push_back(std::move(compare));
      removals.push_back(remove(each.key));
    }
    const TransactionReply reply = store_.execute(
        {.compares = std::move(compares), .then = std::move(removals), .otherwise = readOperations(place)},
        deadline);
    if (reply.succeeded) {
      place.toSendBack.resize(rest);
    } else {
      update(place, reply, deadline);
    }
  }
}

// Throws, and leaves, when those who hold the key have named another limit.
void ClaimQueue::checkLimit(Place& place, Instant deadline) {
  if (place.created == 0 || !place.otherLimit) return;
  const std::uint32_t limit = *place.otherLimit;
  leave(place, deadline);
  place.created = 0;
  throwLimitsDisagree(place.claim.key, *place.claim.share, limit);
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
void ClaimQueue::abandon(const Place& place) noexcept {
  if (place.created == 0) return;
  waitingLease_.abandoned(place.key, place.lease);
  try {
    store_.send("/v3/kv/txn", transaction(unchanged(place), {remove(place.key)}, {}));
  } catch (const std::exception&) {  // no memory: it ends with its lease
  }
}

}  // namespace lockkeeper::etcd
