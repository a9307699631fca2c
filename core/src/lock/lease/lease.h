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

/// One that has fired. The first call allocates it, for all.
const std::stop_token& firedToken();

/// What was told of a lock. Its loss is told only after it was told of as acquired: lostUntold until then.
enum class Told : char { nothing, acquired, lostUntold, loss };

/// How a lock ceased to be held: its claim has another holder now, it was left to end in the store, or it was
/// released when it was lost, alive but too late, or still valid.
enum class Ending : char { none, handedOn, leftToEnd, lost, late, valid };

/// An enumerator in one byte.
template <class Enum>
class OneByte {
 public:
  constexpr OneByte(Enum value) noexcept : byte_(static_cast<char>(value)) {}
  constexpr operator Enum() const noexcept { return static_cast<Enum>(byte_); }

 private:
  char byte_;
};

/// What a lease asks of the one that keeps it, the LeaseKeeper. Thread-safe.
class LeaseHost {
 public:
  virtual ~LeaseHost() = default;

  /// The outcome of a release that was posted, from the driver.
  virtual void releaseAnswered(Lease& lease, ReleaseOutcome outcome) noexcept = 0;
  virtual void releaseFailed(Lease& lease, ErrorCode code, std::string_view text) noexcept = 0;

  /// Fires when the lease is lost.
  virtual std::stop_token lostToken(Lease& lease) noexcept = 0;
  /// Whether the lease goes on although it seems to have ended; false: its loss is told.
  virtual bool stillRuns(Lease& lease) = 0;
};

/// What the leases of one manager have in common, but those that are taken in a trace: each of them has a
/// copy with that.
struct LeaseContext {
  /// Not its owner: a Lock that was released keeps no manager alive.
  const std::weak_ptr<LeaseHost> keeper;
  const std::shared_ptr<Clock> clock;
  const std::string owner;           ///< The engine's label.
  const std::size_t namespaceBytes;  ///< Of each key.
  const ForkGuard forkGuard{};
  std::string trace{};  ///< Event::trace.
};

/// One held lock: what a Lock and the LeaseKeeper share. The members above the line do not change once it is
/// held; validUntil and state are written under the keeper's mutexes only; those below the line belong to the
/// keeper. A process may hold very many: what is small is stored as such.
struct Lease final : std::enable_shared_from_this<Lease>, PostListener {
  using Milliseconds = std::chrono::duration<std::int32_t, std::milli>;
  static constexpr Milliseconds tenthOfLease{-1};  ///< No margin has that length.
  static constexpr Share noShare{.weight = 0, .limit = 0};

  const std::shared_ptr<const LeaseContext> context;
  LocalQueue::Turn turn;  ///< Kept while held, so that the process's next caller waits. It has the key.
  Token token;
  std::chrono::nanoseconds maxHold{};
  Instant acquiredAt{};
  Fence fenceNumber = 0;
  Share share = noShare;       ///< noShare: all of the key.
  Milliseconds ttl;            ///< What the store is asked for.
  Milliseconds margin;         ///< tenthOfLease: of what the store gives.
  std::uint8_t turnsLeft = 0;  ///< So many more may hold what the store has granted: see turn.handingOn().
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
  Instant leasedFrom{};               ///< As the store gave it last,
  std::chrono::nanoseconds length{};  ///< for so long.
  Instant confirmedFrom{};            ///< When what last showed that the store has it was asked.
  Instant renewAt = Instant::max();   ///< Instant::max(): no renewal is planned, or one is under way.
  Instant releasedAt{};               ///< When its holder has released it.
  Instant leftUntil{};                ///< With Ending::leftToEnd, when its lease is to end.
  HeapPlace endPlace = nowhere;       ///< In the keeper's heap of ends,
  HeapPlace renewalPlace = nowhere;   ///< and in that of renewals.
  Lease* nextByToken = nullptr;       ///< In the keeper's hash chains.

  /// Of the key with the namespace, which has that hash.
  Lease(std::shared_ptr<const LeaseContext> context, std::string fullKey, LocalQueue::Hash keyHash,
        const LockTerms& terms);
  ~Lease() override;

  const std::string& key() const noexcept { return turn.key(); }
  std::optional<Fence> fence() const noexcept { return hasFence ? std::optional(fenceNumber) : std::nullopt; }
  Instant endOfLease() const noexcept { return saturatingAdd(leasedFrom, length); }
  /// By then the store has ended it, whichever request of its claim comes to it `now` or before.
  Instant endAtLatest(Instant now) const noexcept {
    return saturatingAdd(now, std::max<std::chrono::nanoseconds>(ttl, length));
  }
  Instant holdUntil() const noexcept { return saturatingAdd(acquiredAt, maxHold); }

  /// Its holder has released it `now`. To be called before its release is posted.
  void endHolding(Instant now, bool wasAlive, bool wasValid) noexcept {
    releasedAt = now;
    ending = !wasAlive ? Ending::lost : wasValid ? Ending::valid : Ending::late;
  }

  /// Nobody holds it any more, and the store is to keep it until `end`.
  void leaveToEnd(Instant end) noexcept {
    leftUntil = end;
    ending = Ending::leftToEnd;
  }
  /// The renewal that makes it end at `leftUntil`.
  Renewal lastRenewal(Instant now) const;

  /// What became of its release, if that was posted: the keeper tells of it.
  void answered(ReleaseOutcome outcome) noexcept override;
  void failed(ErrorCode code, std::string_view text) noexcept override;

  std::optional<Share> sharing() const noexcept {
    return share == noShare ? std::nullopt : std::optional(share);
  }
  Claim claim() const { return {key(), token, context->owner, sharing()}; }
  std::string_view trace() const noexcept { return context->trace; }
  std::size_t tokenHash() const { return hashOf(token); }
  Instant endTime() const { return validUntil.load(std::memory_order_relaxed); }
  Instant renewalTime() const { return renewAt; }

  /// To be sent now: a full lease, or, while the holder renews it itself, only what it has of it.
  Renewal renewal(Instant now) const;

  /// Whether work under the lease may go on; finds the loss when its time has come unnoticed. Any thread may
  /// ask, whatever others do with the Lock.
  bool valid() noexcept;

  /// Fires when it is lost. Has fired already when there is no memory for it.
  std::stop_token lostToken() noexcept;

  /// Held or suspect: neither released nor lost.
  bool alive() const noexcept {
    const LockState now = state.load(std::memory_order_acquire);
    return now == LockState::held || now == LockState::suspect;
  }

  /// The store has not confirmed it lately.
  bool suspect() const noexcept { return state.load(std::memory_order_acquire) == LockState::suspect; }

  /// The store has granted the claim, just `now`, for so many `turns`.
  void granted(const Granted& grant, std::uint32_t turns, Instant now) noexcept;

  /// Becomes the next one to hold what the store has granted to `former`, from `now` on. False when that
  /// asked for another ttl, or the lease is over.
  bool succeed(const Lease& former, Instant now) noexcept;

  /// Held from `now` on for what the caller asked for: until now it was kept while others were waited for.
  void startHolding(const LockTerms& terms, Instant now) noexcept;

  /// The store has given the lease for `leasedFor` from `from` on: sets validUntil and the next renewal.
  void leased(Instant from, std::chrono::nanoseconds leasedFor) noexcept;

 private:
  Instant end() const noexcept;
};

}  // namespace lockkeeper::detail
