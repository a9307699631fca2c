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
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/listener.h"
#include "lockkeeper/lock.h"

namespace lockkeeper::detail {

class Engine;
class LeaseKeeper;

/// Whether a lock was told of as acquired, before which its loss is not told.
enum class Announced : char { no, yes, lostBefore };

/// One held lock: what a Lock and the LeaseKeeper share. The members above the line do not change once it is
/// held; validUntil and state are written under the keeper's mutex only; those below the line belong to the
/// keeper.
struct Lease : std::enable_shared_from_this<Lease> {
  std::weak_ptr<LeaseKeeper> keeper;  ///< Not its owner: a Lock that was released keeps no manager alive.
  std::shared_ptr<Clock> clock;
  ForkGuard forkGuard;
  std::string key;  ///< With the namespace.
  std::size_t namespaceBytes = 0;
  Token token;
  std::string_view owner;                          ///< The engine's label.
  std::chrono::nanoseconds ttl{};                  ///< What the store is asked for.
  std::optional<std::chrono::nanoseconds> margin;  ///< Empty: a tenth of what the store gives.
  Renew renew = Renew::automatic;
  std::optional<Fence> fence;
  Instant acquiredAt{};
  Instant holdUntil = Instant::max();

  std::atomic<Instant> validUntil{Instant{}};
  std::atomic<LockState> state{LockState::held};
  std::stop_source lost;
  std::atomic<Announced> announced{Announced::no};
  LossReason lossReason = LossReason::leaseEnded;  ///< Read it only when state is lost.
  // ------------------------------------------------------------
  std::chrono::nanoseconds length{};   ///< As the store gave it last.
  Instant leasedFrom{};                ///< The same.
  Instant confirmedFrom{};             ///< When what last showed that the store has it was asked.
  Instant renewAt = Instant::max();    ///< Instant::max() also while a renewal is under way.
  LocalQueue::Turn turn;               ///< Kept while held, so that the process's next caller waits.
  std::size_t endPlace = nowhere;      ///< In the keeper's heap of ends,
  std::size_t renewalPlace = nowhere;  ///< and in that of renewals.

  Lease(Engine& takenBy, std::string fullKey, std::size_t prefix, const Token& secret,
        const LockTerms& terms);
  ~Lease();

  Claim claim() const { return {key, token, owner}; }

  /// To be sent now: a full lease, or, while the holder renews it itself, only what it has of it.
  Renewal renewal(Instant now) const;
  std::chrono::milliseconds ttlMilliseconds() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(ttl);
  }

  /// Whether work under the lease may go on; finds the loss when its time has come unnoticed. Any thread may
  /// ask, whatever others do with the Lock.
  bool valid() noexcept;

  /// Held or suspect: neither released nor lost.
  bool alive() const noexcept {
    const LockState now = state.load(std::memory_order_acquire);
    return now == LockState::held || now == LockState::suspect;
  }

  /// The store has given the lease for `leasedFor` from `from` on: sets validUntil and the next renewal.
  void leased(Instant from, std::chrono::milliseconds leasedFor) noexcept;
};

}  // namespace lockkeeper::detail
