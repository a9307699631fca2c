#pragma once

#include <vector>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper {

/// The store can list its locks.
class LOCKKEEPER_CORE_EXPORT Browsable {
 public:
  virtual ~Browsable() = default;

  /// Calls `visit` once for each key that was held during the whole listing and starts with `prefix`; keys
  /// that come or go meanwhile may be missing. Any order. `visit` returns false to end the listing.
  virtual void list(std::string_view prefix,
                    const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                    Instant deadline) = 0;

  /// Like list(), for a part of the `wanted` keys, which begins at `place`: empty, or what the call before
  /// has returned. Returns where the next part begins; empty after the last one. May begin anew, when a place
  /// is none any more, such as after a failover. Also visits keys that
  /// acquire() would find busy although no client of this scheme holds them: locks of other clients, or data
  /// that looks like one. Their owner is empty.
  virtual std::string listBusy([[maybe_unused]] std::string_view place,
                               const std::function<bool(std::string_view key)>& wanted,
                               const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                               Instant deadline) {
    list(
        "", [&](std::string_view key, const Holder& holder) { return !wanted(key) || visit(key, holder); },
        deadline);
    return {};
  }
};

/// Somebody who waits in the store's queue for a key.
struct Waiter {
  std::string owner;                                ///< Its label; empty when it has none.
  std::optional<std::chrono::milliseconds> waited;  ///< On the store's clock; empty: not known.
  std::optional<Share> share{};                     ///< What it wants of the key; empty: all.
};

/// The store can list who waits in its queues.
class LOCKKEEPER_CORE_EXPORT WaiterBrowsable {
 public:
  virtual ~WaiterBrowsable() = default;

  /// For each of `keys`, in their order, those who wait in its queue, the next one to be served first.
  /// Callers of one process are one waiter. The dead are left out as soon as the store can tell. Changes
  /// nothing. Throws as LockDriver::holder(); ConfigError where the account may not see queues.
  virtual std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) = 0;
  static constexpr std::size_t mostListed = 1000;  ///< Of one key.
};

/// The store lets an operator take a lock from its holder.
class LOCKKEEPER_CORE_EXPORT Breakable {
 public:
  virtual ~Breakable() = default;

  /// Frees the key whoever holds it; false when it was free. With `shown`, which holder() has returned, only
  /// while that same grant holds the key. The old holder finds out at its next renewal, or at once if the
  /// driver has LossReporting; until then only a fenced resource refuses it.
  virtual bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) = 0;
};

/// The store counts permits: claims may have a share of a key (Claim::share). A key is granted to as many as
/// fit; each has its own lease, and is not counted after its end, on the store's clock. acquire() and
/// acquireWaiting() call throwLimitsDisagree() when the holders have named another limit. A store with a
/// queue grants no share while others wait in it (but AcquireRequest::ahead), so that neither readers nor
/// writers starve; those at its front that fit are granted together.
class LOCKKEEPER_CORE_EXPORT Permits {
 public:
  virtual ~Permits() = default;

  /// All who have a share of the key, whose fences may be left out; none when one claim has the whole key.
  /// LockDriver::holder() returns one of them, and breakLock() ends the one that it is shown.
  virtual std::vector<Holder> shareHolders(std::string_view key, Instant deadline) = 0;

  /// From now on, the key has `limit` permits, for claims that name it. No holder loses its share, even if
  /// more permits are taken. False when nobody has a share of the key: then the next claim decides.
  virtual bool resize(std::string_view key, std::uint32_t limit, Instant deadline) = 0;
};

}  // namespace lockkeeper
