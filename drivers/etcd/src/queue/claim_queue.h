#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lease/leases.h"
#include "lockkeeper/driver/driver.h"
#include "queue/wake_ups.h"

namespace lockkeeper::etcd {

/// The queue of those who wait for a lock is its claims themselves, in the order of their create revisions:
/// the first one holds it, or those at the front that share it. Who waits for all of it watches the one
/// before it, who waits for a share all that are. A claim waits on a short lease that this process shares;
/// when its turn comes it moves to one of its own, for the ttl that was asked for. A turn that has come
/// stays: what is before a claim only becomes less.
///
/// A share that goes ahead of those who wait (AcquireRequest::ahead) enters behind them, and sends them back
/// when it has room: their claims are removed and they enter again, so that fences stay in order.
///
/// Who stops waiting without an answer leaves its claim behind, so that a call with the same token finds its
/// place. When none comes within a second, all others move to another lease, and the claim ends with the old
/// one. Thread-safe.
class ClaimQueue {
 public:
  ClaimQueue(EtcdStore& store, Leases& leases, HeldClaims& held)
      : store_(store),
        leases_(leases),
        waitingLease_(leases, store.clock()),
        wakeUps_(store, waitingLease_, held) {}

  /// Waits until the claim is granted, `until`, or `stop`, and returns one ioTimeout later at most. Throws as
  /// LockDriver::acquire(); OutcomeUnknown also when the claim may still be in the queue.
  AcquireResult wait(const AcquireRequest& request, Instant until, const std::stop_token& stop);

  /// One attempt: grants the claim if its turn is there when it enters. Throws as wait().
  AcquireResult attempt(const AcquireRequest& request);

  /// As WakeUps.
  void readPending() { wakeUps_.readPending(); }

  /// As WaitingLease.
  void resumed(const std::string& claim) { waitingLease_.resumed(claim); }

 private:
  struct Place;
  struct Wait;

  AcquireResult enterAndWait(const AcquireRequest& request, Instant until, const std::stop_token& stop);
  std::optional<Granted> waitIn(Place& place, Wait& wait);
  std::int64_t sharedLease(Instant deadline);
  void enter(Place& place, Instant deadline);
  void read(Place& place, Instant deadline);
  void changeLease(Place& place, Instant deadline);
  std::optional<Granted> confirm(Place& place, std::chrono::milliseconds ttl, Instant deadline);
  static std::vector<std::string> readOperations(const Place& place);
  static std::string firstBefore(const Place& place);
  void update(Place& place, const TransactionReply& reply, Instant deadline);
  void updateObstacles(Place& place, std::vector<Entry> before, Instant deadline);
  void sendBack(Place& place, Instant deadline);
  void checkLimit(Place& place, Instant deadline);
  static std::vector<std::string> unchanged(const Place& place);
  void leave(Place& place, Instant deadline);
  void abandon(const Place& place) noexcept;

  EtcdStore& store_;
  Leases& leases_;
  WaitingLease waitingLease_;
  WakeUps wakeUps_;
};

}  // namespace lockkeeper::etcd
