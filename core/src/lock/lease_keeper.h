#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/hash_chains.h"
#include "base/relay.h"
#include "base/time_heap.h"
#include "lock/lease.h"
#include "lock/unawaited_releases.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/listener.h"

namespace lockkeeper::detail {

/// Keeps the leases of one manager alive and says when one is lost. Its renewers talk to the store and may be
/// held up by it; its expiry threads never do, so that a loss is told in time even while the store hangs.
/// Both are few threads, whatever the number of locks, and start with the first lock. Thread-safe.
///
/// Held by shared_ptr: its threads keep it alive until they have ended.
class LeaseKeeper final : public std::enable_shared_from_this<LeaseKeeper> {
 public:
  LeaseKeeper(std::shared_ptr<LockDriver> driver, const Environment& environment, std::string owner,
              std::chrono::nanoseconds operationTimeout, std::chrono::nanoseconds retryPause);

  /// Starts the threads, once. Apart from add(), so that no lock is taken first and then cannot be kept.
  /// Throws StoreUnavailable when there are none to be had; the next call tries again.
  void start();

  /// The lease's claim has this token from now on, and is about to be sent. The store may be faster in
  /// telling of its loss than of its grant: a lease of whose loss it tells from now on is suspect when it is
  /// kept.
  void expect(Lease& lease, const Token& token);
  /// Does nothing for a lease that is kept, or is not expected.
  void stopExpecting(Lease& lease) noexcept;

  /// Starts to renew and watch the lease, which lives at least until remove(). Its loss is not told yet. When
  /// there is no memory for that, throws and has done nothing.
  void add(Lease& lease);

  /// Others have heard of the lock: from now on they may hear of its loss.
  void announced(Lease& lease);

  /// Lease::startHolding(), for a lease that is kept already.
  void startHolding(Lease& lease, const LockTerms& terms);

  /// Ends that, because the holder releases. False when the lease was lost or released before.
  bool remove(Lease& lease) noexcept;
  /// Likewise, and the lease is left to end in the store at `end`. The caller sees to that by
  /// Lease::lastRenewal(); should a renewal that is under way overtake that, it is sent again.
  bool leaveToEnd(Lease& lease, Instant end) noexcept;

  /// The store has confirmed the release that began at lease.releasedAt(). Should it turn out to have
  /// forgotten that, the key is released again.
  void freed(Lease& lease) noexcept;

  /// Of a lease with turns left; empty when it was lost or released.
  std::optional<LocalQueue::Stay> stayOf(Lease& lease);

  /// Instead: keeps the lease that the next caller in line waits with, which takes over what the store has
  /// granted. Returns what is to be notified then. Null when nobody can take it over `now`, or the lease is
  /// in doubt or was since it was granted; then nothing has happened.
  std::condition_variable* handOver(Lease& lease, Instant now);

  /// Posts the release of a lease that was removed and whose holding has ended; its end is told when the
  /// outcome has come. False: not sent.
  bool post(Lease& lease) noexcept { return unawaited_.post(lease.claim(), lease.shared_from_this()); }
  /// The outcome, from the driver.
  void releaseAnswered(Lease& lease, ReleaseOutcome outcome) noexcept;
  void releaseFailed(Lease& lease, ErrorCode code, std::string_view text) noexcept;

  /// One of several that are lost together: what its loss fires is `all`, which lostToken() then is a token
  /// of. To be called before lostToken().
  void loseTogether(Lease& lease, std::stop_source all);

  /// As Lease::lostToken().
  std::stop_token lostToken(Lease& lease) noexcept;

  /// Whether a lease whose end seems to have come was renewed just now; if not, it is lost.
  bool stillRuns(Lease& lease);

  /// The outcome of one renewal, by whomever it was asked and since when. True when the lease runs on anew; a
  /// loss is told by an expiry thread, so that no callback of lost() holds up a thread that renews (without
  /// memory for that, by the calling thread).
  bool renewed(Lease& lease, const Renewal& renewal, Instant began);

  /// Releases `claim` in the background, until the store has answered or `until` has come: its outcome is not
  /// known, and nobody uses it any more. Without memory for that, it ends with its ttl.
  void abandon(const Claim& claim, Instant until) noexcept;

  /// How many leases are LockState::suspect.
  std::size_t suspects();

  /// Ends all threads, after the outcomes of what was posted and one more try at what was abandoned. Waits
  /// for that until `until` at most. A thread that goes on then reports nothing any more. The second
  /// call does nothing.
  void shutDown(Instant until);

 private:
  class EventGate;
  class LossInbox;

  static constexpr int shardBits = 4;

  /// The leases that are alive and whose tokens begin alike, so that locks of different keys seldom wait for
  /// each other. Its mutex may be taken while the keeper's is held, but not the other way round.
  struct Shard {
    std::mutex mutex;
    TimeHeap<Lease, &Lease::endPlace, &Lease::endTime> ends;              // all
    TimeHeap<Lease, &Lease::renewalPlace, &Lease::renewalTime> renewals;  // some
    HashChains<Lease, &Lease::nextByToken, &Lease::tokenHash> byToken;    // all
    HashChains<Lease, &Lease::nextByToken, &Lease::tokenHash> expected;   // those that are not kept yet

    void reserve(std::size_t count);
    void add(Lease& lease);
    void remove(Lease& lease);
    void stopExpecting(Lease& lease) noexcept;  // if it is expected
    Lease* find(const Token& token) const;
    Lease* findExpected(const Token& token) const;
  };
  /// When a renewer and an expiry thread have to look after a lease.
  struct Due {
    Instant renewal = Instant::max();
    Instant end = Instant::max();
  };

  // The chains go by the lowest bits.
  Shard& shardOf(const Token& token) {
    return shards_[hashOf(token) >> (std::numeric_limits<std::size_t>::digits - shardBits)];
  }
  void startThreads();
  Instant firstRenewal();
  Instant firstEnd();
  std::size_t plannedRenewals();
  bool keepsAny() { return firstEnd() != Instant::max(); }
  static Due dueOf(const Lease& lease);
  void wakeUpFor(const Due& due);
  void wakeUpAt(Relay& relay, Instant when);

  Instant nextLoss();
  std::shared_ptr<Lease> loseNext();
  void tellNextLoss(std::unique_lock<std::mutex>& held);
  void renewDue(std::unique_lock<std::mutex>& held);
  void endInTime(const Lease& lease, RenewOutcome outcome);
  void tellUntold(std::unique_lock<std::mutex>& held);
  static std::shared_ptr<Lease> lose(Shard& shard, Lease& lease, LossReason reason);
  void tellLater(std::shared_ptr<Lease> lost) noexcept;
  void tellLoss(Lease& lease);
  void fireLost(Lease& lease);
  static void putInDoubt(Shard& shard, Lease& lease, Instant now) noexcept;
  void look(std::unique_lock<std::mutex>& held);
  void planLook(Instant now);
  void claimsLost(std::span<const Token> tokens) noexcept;
  void tellReleased(const Lease& lease, Instant ended, bool foundLost, std::optional<ErrorCode> error = {});
  void claimsInDoubt() noexcept;
  void releaseAgain() noexcept;
  bool inDoubt(const Lease& lease) const { return lease.confirmedFrom < lastDoubt_.load(); }

  const std::shared_ptr<LockDriver> driver_;
  const std::string store_;                  // its name in events
  const std::shared_ptr<EventGate> events_;  // null when nobody listens
  const Environment environment_;
  const std::chrono::nanoseconds operationTimeout_;
  DoubtReporting* const doubts_;                        // null when the driver has none
  LossReporting* const losses_;                         // likewise
  std::optional<std::chrono::milliseconds> lookEvery_;  // does not change after start()

  std::array<Shard, std::size_t{1} << shardBits> shards_;
  std::atomic<Instant> lastDoubt_ = Instant::min();  // what was confirmed before has to be confirmed again

  std::mutex startMutex_;  // one call of start() at a time
  std::atomic<bool> started_ = false;

  std::mutex mutex_;                          // of all that follows
  std::size_t firstShard_ = 0;                // of the next group of renewals
  std::list<std::shared_ptr<Lease>> untold_;  // lost ones
  UnawaitedReleases unawaited_;
  std::vector<std::shared_ptr<Lease>> freed_;  // the last ones, in a ring, where another server may take over
  std::size_t nextFreed_ = 0;
  Instant lookUntil_ = Instant::min();  // for what was released
  Instant nextLook_ = Instant::max();
  bool looking_ = false;
  const std::shared_ptr<LossInbox> inbox_;
  Relay expiryThreads_;
  Relay renewers_;
};

}  // namespace lockkeeper::detail
