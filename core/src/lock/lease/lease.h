#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/time_heap.h"
#include "lock/lease/local_queue.h"
#include "lock/lease/options.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/listener.h"
#include "lockkeeper/lock.h"

namespace lockkeeper::detail {

struct Lease;

std::size_t hashOf(const Token& token);

/// A token that has fired. The first call allocates it, for all callers.
const std::stop_token& firedToken();

/// What the listener was told of a lock. Its loss is told only after its acquisition: until then it is
/// lostUntold.
enum class Told : char { nothing, acquired, lostUntold, loss };

/// How the holding of a lock has ended.
enum class Ending : char {
  none,       ///< It has not.
  handedOn,   ///< The claim has another holder.
  leftToEnd,  ///< The lease ends in the store by itself.
  lost,       ///< The lock was released when it was lost already,
  late,       ///< alive but not valid any more,
  valid,      ///< or valid.
};

/// Why a lease is lost whose release has this outcome, which is not `released`.
constexpr LossReason lossReasonOf(ReleaseOutcome outcome) {
  return outcome == ReleaseOutcome::notOwner ? LossReason::notOwner : LossReason::ownershipUncertain;
}

/// Stores an enumerator in one byte.
template <class Enum>
class OneByte {
 public:
  constexpr OneByte(Enum value) noexcept : byte_(static_cast<char>(value)) {}
  constexpr operator Enum() const noexcept { return static_cast<Enum>(byte_); }

 private:
  char byte_;
};

/// The LeaseKeeper as its leases see it. Thread-safe.
class LeaseHost {
 public:
  virtual ~LeaseHost() = default;

  /// The driver tells the outcome of a posted release.
  virtual void releaseAnswered(Lease& lease, ReleaseOutcome outcome) noexcept = 0;
  virtual void releaseFailed(Lease& lease, ErrorCode code, std::string_view text) noexcept = 0;

  /// Fires when the lease is lost.
  virtual std::stop_token lostToken(Lease& lease) noexcept = 0;
  /// Whether the lease goes on although it seems to have ended; false: its loss is told.
  virtual bool stillRuns(Lease& lease) = 0;
};

/// What the leases of one manager have in common. A lease that is taken in a trace has a copy with that
/// trace.
struct LeaseContext {
  /// Weak: a Lock that was released keeps no manager alive.
  const std::weak_ptr<LeaseHost> keeper;
  const std::shared_ptr<Clock> clock;
  const std::string owner;           ///< The engine's label.
  const std::size_t namespaceBytes;  ///< Of each key.
  const ForkGuard forkGuard{};
  std::string trace{};  ///< Event::trace.
};

/// One held lock: what a Lock and the LeaseKeeper share. The members above the line do not change once it is
/// held, but for validUntil and state, which are written under the keeper's mutexes only. Those below the
/// line belong to the keeper. A process may hold very many leases, so that small members have small types.
struct Lease final : std::enable_shared_from_this<Lease>, PostListener {
  using Milliseconds = std::chrono::duration<std::int32_t, std::milli>;
  static constexpr Milliseconds tenthOfLease{-1};  ///< No margin has that length.
  static constexpr Share noShare{.weight = 0, .limit = 0};

  const std::shared_ptr<const LeaseContext> context;
  LocalQueue::Turn turn;  ///< Kept while held, so that the process's next caller waits. It has the key.
  Token token;
  std::chrono::nanoseconds heldFor{};  ///< The bound; once its holding has ended, how long that was.
  Instant acquiredAt{};
  Fence fenceNumber = 0;
  Share share = noShare;       ///< noShare: all of the key.
  Milliseconds ttl;            ///< What the store is asked for.
  Milliseconds margin;         ///< tenthOfLease: of what the store gives.
  std::uint8_t turnsLeft = 0;  ///< How many more may hold the store's grant: see turn.handingOn().
  bool hasFence = false;
  bool needsRenewal = false;  ///< It was handed over with less than half of its length left.
  OneByte<Renew> renew;

  std::atomic<Told> told{Told::nothing};
  std::atomic<OneByte<LockState>> state{LockState::held};
  OneByte<LossReason> lossReason = LossReason::leaseEnded;  ///< Read it only when state is lost.
  std::atomic<Ending> ending{Ending::none};
  std::atomic<Instant> validUntil{Instant{}};
  std::stop_source lost{std::nostopstate};  ///< Made when somebody asks for it, or shared; the keeper's.
  // ------------------------------------------------------------
  Instant leasedFrom{};               ///< The store gave the lease last from then on,
  std::chrono::nanoseconds length{};  ///< and for so long.
  Instant confirmedFrom{};            ///< When the request was sent that the store confirmed it by last.
  Instant renewAt = Instant::max();   ///< Instant::max(): no renewal is planned, or one is under way.
  HeapPlace endPlace = nowhere;       ///< In the keeper's heap of ends,
  HeapPlace renewalPlace = nowhere;   ///< and in that of renewals.
  Lease* nextByToken = nullptr;       ///< In the keeper's hash chains.

  /// `fullKey` has the namespace, and `keyHash` is its hash.
  Lease(std::shared_ptr<const LeaseContext> context, std::string fullKey, LocalQueue::Hash keyHash,
        const LockTerms& terms);
  ~Lease() override;

  const std::string& key() const noexcept { return turn.key(); }
  std::optional<Fence> fence() const noexcept { return hasFence ? std::optional(fenceNumber) : std::nullopt; }
  Instant endOfLease() const noexcept { return saturatingAdd(leasedFrom, length); }
  /// From when on the store may have ended it by itself.
  Instant mayEndAt() const noexcept { return saturatingAdd(leasedFrom, length - driftOf(length)); }
  /// Whether it may have ended by itself before its release came to the store, whose answer has come `now`.
  bool mayHaveEnded(Instant now) const noexcept { return mayEndAt() <= now; }
  /// When the store has certainly ended it, even if a request that was sent by `now` lengthens it.
  Instant endAtLatest(Instant now) const noexcept {
    return saturatingAdd(now, std::max<std::chrono::nanoseconds>(ttl, length));
  }
  /// When its holding ends at the latest, or when it has ended. With Ending::leftToEnd that is to come.
  Instant heldUntil() const noexcept { return saturatingAdd(acquiredAt, heldFor); }

  /// Its holder has released it `now`. To be called before its release is posted.
  void endHolding(Instant now, bool wasAlive, bool wasValid) noexcept {
    heldFor = now - acquiredAt;
    ending = !wasAlive ? Ending::lost : wasValid ? Ending::valid : Ending::late;
  }

  /// Nobody holds it any more, and the store is to keep it until `end`.
  void leaveToEnd(Instant end) noexcept {
    heldFor = end - acquiredAt;
    ending = Ending::leftToEnd;
  }
  /// The renewal that makes it end at heldUntil().
  Renewal lastRenewal(Instant now) const;

  /// The outcome of its posted release, which goes to the keeper.
  void answered(ReleaseOutcome outcome) noexcept override;
  void failed(ErrorCode code, std::string_view text) noexcept override;

  std::optional<Share> sharing() const noexcept {
    return share == noShare ? std::nullopt : std::optional(share);
  }
  Claim claim() const { return {key(), token, context->owner, sharing()}; }
  std::string_view trace() const noexcept { return context->trace; }
  /// The event that tells of its end, which is `released` or `lost`. `store` is the store's name.
  Event endEvent(EventKind kind, std::string_view store, Instant ended) const;
  std::size_t tokenHash() const { return hashOf(token); }
  Instant endTime() const { return validUntil.load(std::memory_order_relaxed); }
  Instant renewalTime() const { return renewAt; }

  /// The renewal to send now. It asks for a full lease, or, if the holder renews by hand, only for what is
  /// left of the present one.
  Renewal renewal(Instant now) const;

  /// Whether work under the lease may go on. Notices the loss if the lease has ended just now. Any thread may
  /// call it, whatever others do with the Lock.
  bool valid() noexcept;

  /// Fires when the lease is lost. If there is no memory for it, it has fired already.
  std::stop_token lostToken() noexcept;

  /// Held or suspect: neither released nor lost.
  bool alive() const noexcept {
    const LockState now = state.load(std::memory_order_acquire);
    return now == LockState::held || now == LockState::suspect;
  }

  /// The store has not confirmed it lately.
  bool suspect() const noexcept { return state.load(std::memory_order_acquire) == LockState::suspect; }

  /// The store has granted the claim `now`.
  void granted(const Granted& grant, Instant now) noexcept;

  /// Takes over, `now`, what the store has granted to `former`. False if the lease has ended, or if the two
  /// ask for different ttls.
  bool succeed(const Lease& former, Instant now) noexcept;

  /// The caller of lockAll() has all keys: from `now` on, the lease is held and renewed by its `terms`.
  void startHolding(const LockTerms& terms, Instant now) noexcept;

  /// The store has given the lease for `leasedFor` from `from` on: sets validUntil and the next renewal.
  void leased(Instant from, std::chrono::nanoseconds leasedFor) noexcept;

 private:
  Instant end() const noexcept;
};

}  // namespace lockkeeper::detail
