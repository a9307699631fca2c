#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/time_heap.h"
#include "lock/local_queue.h"
#include "lock/options.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/listener.h"
#include "lockkeeper/lock.h"

namespace lockkeeper::detail {

class Engine;
class LeaseKeeper;

std::size_t hashOf(const Token& token);

/// One that has fired. The first call allocates it, for all.
const std::stop_token& firedToken();

/// Whether a lock was told of as acquired, before which its loss is not told.
enum class Announced : char { no, yes, lostBefore };

/// How a lock was when its holder let go of it.
struct LastState {
  Instant when{};
  bool alive = false;  ///< Not lost: its end is still to be told.
  bool valid = false;  ///< And the lease still ran.
};

/// One held lock: what a Lock and the LeaseKeeper share. The members above the line do not change once it is
/// held; validUntil and state are written under the keeper's mutexes only; those below the line belong to the
/// keeper.
struct Lease final : std::enable_shared_from_this<Lease>, PostListener {
  std::weak_ptr<LeaseKeeper> keeper;  ///< Not its owner: a Lock that was released keeps no manager alive.
  std::shared_ptr<Clock> clock;
  ForkGuard forkGuard;
  std::string key;  ///< With the namespace.
  Token token;
  std::optional<Share> share;                      ///< Empty: all of the key.
  const std::string& owner;                        ///< The engine's label.
  std::chrono::nanoseconds ttl{};                  ///< What the store is asked for.
  std::optional<std::chrono::nanoseconds> margin;  ///< Empty: a tenth of what the store gives.
  std::chrono::nanoseconds maxHold{};
  std::uint32_t namespaceBytes = 0;
  Renew renew = Renew::automatic;
  std::optional<Fence> fence;
  Instant acquiredAt{};
  Instant holdUntil = Instant::max();
  Instant handOnUntil{};        ///< Before then, others may hold what the store has granted,
  Instant grantAskedAt{};       ///< since then,
  std::uint32_t turnsLeft = 0;  ///< so many more.
  bool needsRenewal = false;    ///< It was handed over with less than half of its length left.

  std::atomic<Announced> announced{Announced::no};
  std::atomic<LockState> state{LockState::held};
  LossReason lossReason = LossReason::leaseEnded;  ///< Read it only when state is lost.
  std::atomic<Instant> validUntil{Instant{}};
  std::stop_source lost{std::nostopstate};  ///< Made when somebody asks for its token; the keeper's.
  // ------------------------------------------------------------
  Instant leasedFrom{};               ///< As the store gave it last,
  std::chrono::nanoseconds length{};  ///< for so long.
  Instant confirmedFrom{};            ///< When what last showed that the store has it was asked.
  Instant renewAt = Instant::max();   ///< Instant::max() also while a renewal is under way.
  LocalQueue::Turn turn;              ///< Kept while held, so that the process's next caller waits.
  HeapPlace endPlace = nowhere;       ///< In the keeper's heap of ends,
  HeapPlace renewalPlace = nowhere;   ///< and in that of renewals.
  Lease* nextByToken = nullptr;       ///< In the keeper's hash chains.
  LastState last;                     ///< Written before its release is posted.
  bool handedOn = false;              ///< Its claim has another holder now.
  bool lossTold = false;              ///< Or is being told.

  Lease(Engine& takenBy, std::string fullKey, std::size_t prefix, const LockTerms& terms);
  ~Lease() override;

  /// What became of its release, if that was posted: the keeper tells of it.
  void answered(ReleaseOutcome outcome) noexcept override;
  void failed(ErrorCode code, std::string_view text) noexcept override;

  Claim claim() const { return {key, token, owner, share}; }
  std::size_t tokenHash() const { return hashOf(token); }

  /// To be sent now: a full lease, or, while the holder renews it itself, only what it has of it.
  Renewal renewal(Instant now) const;
  std::chrono::milliseconds ttlMilliseconds() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(ttl);
  }

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

  /// The store has granted the claim, just `now`.
  void granted(const Granted& grant, Instant now) noexcept;

  /// Becomes the next one to hold what the store has granted to `former`, from `now` on. False when that
  /// asked for another ttl, or the lease is over.
  bool succeed(const Lease& former, Instant now) noexcept;

  /// Held from `now` on for what the caller asked for: until now it was kept while others were waited for.
  void startHolding(const LockTerms& terms, Instant now) noexcept;

  /// The store has given the lease for `leasedFor` from `from` on: sets validUntil and the next renewal.
  void leased(Instant from, std::chrono::nanoseconds leasedFor) noexcept;

 private:
  void hold(Instant now) noexcept;
  Instant end() const noexcept;
};

}  // namespace lockkeeper::detail
