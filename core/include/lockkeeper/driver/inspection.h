#pragma once

#include <vector>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper {

/// The store can list its locks.
class LOCKKEEPER_CORE_EXPORT Browsable {
 public:
  virtual ~Browsable() = default;

  /// Receives a key and its holder; returns false to end the listing.
  using Visit = std::function<bool(std::string_view key, const Holder& holder)>;

  /// Visits each key with this prefix that is held during the whole call, once, in any order. Keys that are
  /// taken or freed meanwhile may be missing.
  virtual void list(std::string_view prefix, const Visit& visit, Instant deadline) = 0;

  /// Lists a part of the `wanted` keys, beginning at `place`: empty, or the result of the previous call,
  /// which is empty after the last part. A place that is not valid any more starts again. It also visits keys
  /// that acquire() would find busy although no client of this scheme holds them; their owner is empty.
  virtual std::string listBusy(std::string_view /*place*/,
                               const std::function<bool(std::string_view key)>& wanted, const Visit& visit,
                               Instant deadline) {
    const Visit wantedOnly = [&](auto key, auto& each) { return !wanted(key) || visit(key, each); };
    list("", wantedOnly, deadline);
    return {};
  }
};

/// A waiter in the store's queue for a key.
struct Waiter {
  std::string owner;                                ///< Its label; empty when it has none.
  std::optional<std::chrono::milliseconds> waited;  ///< On the store's clock; empty: not known.
  std::optional<Share> share{};                     ///< What it wants of the key; empty: all.
};

/// The store can list the waiters in its queues.
class LOCKKEEPER_CORE_EXPORT WaiterBrowsable {
 public:
  virtual ~WaiterBrowsable() = default;

  /// The waiters of each of `keys`, in the order in which they are served. The callers of one process count
  /// as one waiter. Changes nothing. Throws as holder(), and ConfigError if the account may not see queues.
  virtual std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) = 0;
  static constexpr std::size_t mostListed = 1000;  ///< Of one key.
};

/// The store allows an operator to take a lock from its holder.
class LOCKKEEPER_CORE_EXPORT Breakable {
 public:
  virtual ~Breakable() = default;

  /// Frees the key; returns false when it was free. With `shown`, a result of holder(), it does so only while
  /// that same grant holds the key. The old holder finds out at its next renewal, or at once with
  /// LossReporting.
  virtual bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) = 0;
};

/// The store counts permits: claims may have a share of a key (Claim::share). As many claims are granted as
/// fit, each with its own lease. A claim calls throwLimitsDisagree() if the holders have named another limit.
/// A store with a queue grants no share while others wait in it (but AcquireRequest::ahead), so that none
/// starves; those at its front that fit are granted together.
class LOCKKEEPER_CORE_EXPORT Permits {
 public:
  virtual ~Permits() = default;

  /// All holders of a share of the key, perhaps without fences; none if one claim has the whole key.
  /// LockDriver::holder() returns one of them, and breakLock() ends the one that it is shown.
  virtual std::vector<Holder> shareHolders(std::string_view key, Instant deadline) = 0;

  /// From now on, the key has `limit` permits, for claims that name it. No holder loses its share, even if
  /// more permits are taken. False when nobody has a share of the key: then the next claim decides.
  virtual bool resize(std::string_view key, std::uint32_t limit, Instant deadline) = 0;
};

}  // namespace lockkeeper
