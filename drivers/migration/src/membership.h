#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "announcements.h"
#include "held_locks.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/migration/migration_options.h"
#include "lockkeeper/migration/state_store.h"
#include "watch/old_store_scan.h"
#include "watch/watch.h"

namespace lockkeeper::migration {

/// This process's part in a migration: says which phase a lock is taken in, and keeps in step with the other
/// processes through the migration's state (docs/adr/0021, tests/simulation/migration.pml). One thread, which
/// starts with the first lock, sends the heartbeats; it keeps this object alive until it ends. Thread-safe.
class Membership : public std::enable_shared_from_this<Membership> {
 public:
  Membership(std::shared_ptr<SharedRecords> records, MigrationOptions options, Environment environment,
             std::shared_ptr<LockDriver> oldStore);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// The last call: ends the thread, which takes this process's record away unless locks in a single phase
  /// may still live. Blocks for a second at most: a thread that a store keeps from ending in time is left to
  /// itself, with all that it uses, and tells the listener nothing any more.
  void leave();

  /// The phase for a lock that is about to be asked for; noted until the lock has ended. Joins the migration
  /// when the owner's label is new to it: waits for one heartbeat, for half of the time until the
  /// request's deadline at most. Throws std::invalid_argument for a ttl above maxTtl.
  Phase choose(const AcquireRequest& request);
  /// Whether the grant counts: a lock in a single phase does only if it was asked for within the lease in
  /// which the phase was chosen. Otherwise the caller gives it back.
  bool confirm(const AcquireRequest& request, const Granted& granted);
  /// Nobody holds the claim any more.
  void forget(const Claim& claim);
  /// A renewal is about to be sent, to the stores of this phase: until doubt() the lock lives. Empty: it must
  /// not be, because the lock is in a single phase, and the lease is over or the ttl above maxTtl; the
  /// renewal says which.
  std::optional<Phase> beginRenewal(Renewal& renewal);
  /// What was sent has come back; the lock may live for another ttl, as far as anyone knows.
  void doubt(const Claim& claim, std::chrono::milliseconds ttl);

  /// The phase in which the claim was taken; empty when it is over.
  std::optional<Phase> phaseOf(const Claim& claim);
  /// The phase of the key's present locks, by the rules alone.
  Phase phaseNow(std::string_view key);
  /// Whether locks in single phases may be taken or renewed by requests sent at `when`.
  bool leasedAt(Instant when);
  /// Whether some lock may be taken in this phase, now or when the target is reached.
  bool mayUse(Phase phase);

  /// The migration's state, as it stands in its store.
  MigrationState read(Instant deadline) { return stateStore_.read(deadline); }

  /// Whether it is time to look whose a busy key in the old store is: now and then.
  bool wantsToLook();
  /// Somebody with this label holds a key in the old store.
  void saw(std::string_view key, std::string_view owner);

 private:
  bool labelIsNew(std::string_view label) const;
  void run();
  void beat(Instant deadline);
  bool exchange(Instant deadline);
  Member record(Instant now) const;
  void absorb(Instant sentAt);
  void startAnew(Instant deadline);
  Phase byRules(std::string_view key) const;

  const MigrationOptions options_;
  const Environment environment_;
  const std::string id_;
  StateStore stateStore_;
  // Used by the thread alone, down to the line.
  Announcements announcements_;
  Watch watch_;
  MigrationState heard_;  // by the last heartbeat
  std::string notedFailure_;
  // ------------------------------------------------------------
  mutable std::mutex mutex_;
  std::vector<std::string> labels_;
  std::uint64_t version_ = 0;
  Rules current_{Phase::both};
  Rules target_;  // what is written; until that was read, what this process would write
  Instant leaseUntil_ = Instant::min();
  std::uint64_t lease_ = 0;  // counts leases: two heartbeats with a gap between them are two leases
  HeldLocks locks_;
  std::vector<OldLock> seen_;
  Instant lookAgainAt_ = Instant::min();
  bool beatNow_ = false;
  bool stopping_ = false;
  bool ended_ = false;          // the thread has done its last work
  std::uint64_t begun_ = 0;     // heartbeats
  std::uint64_t answered_ = 0;  // the last one that the store has answered, or that has failed
  std::condition_variable wakeUp_;
  std::thread heart_;
};

}  // namespace lockkeeper::migration
