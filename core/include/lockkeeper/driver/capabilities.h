#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/export.h"

// What some stores can do and others cannot. Callers ask with capability<Waitable>(driver); no driver has a
// method that it cannot honour.

namespace lockkeeper {

/// The store queues waiting claims itself, so that waiting costs no polling.
class LOCKKEEPER_CORE_EXPORT Waitable {
 public:
  virtual ~Waitable() = default;

  /// Like LockDriver::acquire, but waits in the store's queue: until granted, for `waitFor` at most (then
  /// Busy) or until `stop` is triggered (then Busy). The lease is one of `request.ttl` as after acquire(),
  /// and not older than a quarter of that when the call returns. Core calls it for a key that acquire() has
  /// just found busy, or that another caller has waited for a moment ago, and polls with acquire() when there
  /// is no place in the queue (Busy at once). A key that is free is granted. `request.deadline` is for what
  /// comes before the wait; what must be asked after it is bounded by one I/O timeout. After OutcomeUnknown
  /// the claim may still be in the queue: core calls again with the same token, which finds its place, or
  /// releases it. After WithdrawalUnknown, it only releases it.
  [[nodiscard]] virtual AcquireResult acquireWaiting(const AcquireRequest& request,
                                                     std::chrono::nanoseconds waitFor,
                                                     std::stop_token stop) = 0;
};

/// The store grants several keys in one step.
class LOCKKEEPER_CORE_EXPORT Batchable {
 public:
  virtual ~Batchable() = default;

  /// Claims the keys in the order of `requests`, which is that of their bytes, each as LockDriver::acquire()
  /// does, and ends with the first one that is busy (but see AcquireRequest::waits). Returns the results of
  /// those that were claimed: all but the last one are Granted, and that one is when the rest is in a part of
  /// the store that is unavailable. One bounded attempt until the first request's deadline; the keys differ.
  /// Throws as acquire(), for all of them: after any error but StoreUnavailable, each may have been granted.
  /// Core asks so for up to 1,000 keys, and key by key where a driver is not Batchable.
  [[nodiscard]] virtual std::vector<AcquireResult> acquireInOrder(
      std::span<const AcquireRequest> requests) = 0;
};

/// The store frees several keys in one step.
class LOCKKEEPER_CORE_EXPORT BatchReleasing {
 public:
  virtual ~BatchReleasing() = default;

  /// As LockDriver::release() for each of the claims, which have all of their keys; up to 1,000, whose keys
  /// differ. Throws for all of them: after any error but StoreUnavailable, each may have been released.
  [[nodiscard]] virtual std::vector<ReleaseOutcome> releaseAll(std::span<const Claim> claims,
                                                               Instant deadline) = 0;
};

/// The store tells of those who begin to wait for a key that was granted for several turns
/// (Granted::turns), so that it is not handed on inside a process while others wait.
class LOCKKEEPER_CORE_EXPORT WaiterReporting {
 public:
  virtual ~WaiterReporting() = default;

  /// Whether it has told so since then, of any key of this process. A hint: it may be late or get lost. Reads
  /// what has come already and does not block. Thread-safe.
  virtual bool waitersReportedSince(Instant since) noexcept = 0;
};

/// The store can list its locks.
class LOCKKEEPER_CORE_EXPORT Browsable {
 public:
  virtual ~Browsable() = default;

  /// Calls `visit` once for each key that was held during the whole listing and starts with `prefix`; keys
  /// that come or go meanwhile may be seen or not. Order is the store's. `visit` returns false to end the
  /// listing.
  virtual void list(std::string_view prefix,
                    const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                    Instant deadline) = 0;

  /// Like list(), but also visits keys that acquire() would find busy although no client of this scheme holds
  /// them: locks of other clients, or data that looks like one. Their owner is empty.
  virtual void listBusy(std::string_view prefix,
                        const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                        Instant deadline) {
    list(prefix, visit, deadline);
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

  /// For each of `keys`, in their order, those who wait in its queue: the one that is served next comes
  /// first, 1,000 at most. Callers that wait for a key in one process are one waiter; who polls is none.
  /// Those who have died are left out as soon as the store can tell. Only looks. None where the account may
  /// not see queues. Throws as LockDriver::holder().
  virtual std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) = 0;

  /// The most of one key.
  static constexpr std::size_t mostListed = 1000;
};

/// The store lets an operator take a lock from its holder.
class LOCKKEEPER_CORE_EXPORT Breakable {
 public:
  virtual ~Breakable() = default;

  /// Frees the key whoever holds it; false when it was free. With `shown`, which holder() has returned: only
  /// while that same grant holds the key; false when it does not. The old holder finds out at its next
  /// renewal, or at once if the driver has LossReporting; until then only a fenced resource refuses it. For
  /// operators, not for programs.
  virtual bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) = 0;
};

/// The store counts permits: claims may have a share of a key (Claim::share). A key that has room is granted
/// to as many as fit; each has its own lease, and one that has ended is not counted any more, on the store's
/// clock. Shares and a claim of the whole key exclude each other. Where the store has a queue, nobody is
/// granted a share while others wait in it (but AcquireRequest::ahead), so that neither readers nor writers
/// starve; those in front that fit are served together. Who takes the last permit has a new fence. acquire()
/// and acquireWaiting() throw ConfigError, and do nothing, when those who hold the key have named another
/// limit. LockDriver::holder() tells of one holder.
class LOCKKEEPER_CORE_EXPORT Permits {
 public:
  virtual ~Permits() = default;

  /// All who have a share of the key, as far as the store tells it; their fences may be left out. Empty also
  /// when one claim has the whole key. breakLock() takes one of them for what it was shown.
  virtual std::vector<Holder> shareHolders(std::string_view key, Instant deadline) = 0;

  /// From now on, the key has `limit` permits: for claims that name it. No holder loses its share, even if
  /// there are fewer permits than are taken. False when nobody has a share of the key: then the next claim
  /// decides.
  virtual bool resize(std::string_view key, std::uint32_t limit, Instant deadline) = 0;
};

/// For drivers with Permits: `asked` and those who hold `key`, of which there are `limit` permits, disagree.
[[noreturn]] LOCKKEEPER_CORE_EXPORT void throwLimitsDisagree(std::string_view key, const Share& asked,
                                                             std::uint32_t limit);

/// Is informed by a driver of claims that no longer hold their keys, or perhaps not.
class LOCKKEEPER_CORE_EXPORT LossListener {
 public:
  virtual ~LossListener() = default;

  /// The claims with these tokens are gone; tokens of others are ignored. Thread-safe, does not block, and
  /// calls no driver: a driver may call it under its own mutexes.
  virtual void claimsLost(std::span<const Token> tokens) noexcept = 0;

  /// What the store has said of its claims may not be true any more: all have to be asked for again. As
  /// claimsLost().
  virtual void claimsInDoubt() noexcept {}
};

/// The driver reports claims that are gone (a session ended, an operator took the key away), so that the
/// holder hears of it before the next renewal.
class LOCKKEEPER_CORE_EXPORT LossReporting {
 public:
  virtual ~LossReporting() = default;

  /// From now on, as long as it lives, `listener` hears of every loss that the driver learns of. Several
  /// managers may share a driver: each adds its own. Thread-safe.
  virtual void addLossListener(std::weak_ptr<LossListener> listener) = 0;
};

/// Is informed by a driver of how a posted release has ended: by one call of one of both functions. Does not
/// block, and calls no driver.
class LOCKKEEPER_CORE_EXPORT PostListener {
 public:
  virtual ~PostListener() = default;

  /// The store's answer.
  virtual void answered(ReleaseOutcome outcome) noexcept = 0;
  /// There is none, for a reason as release() would throw it.
  virtual void failed(ErrorCode code, std::string_view text) noexcept = 0;
};

/// The driver can send a release without waiting for the reply.
class LOCKKEEPER_CORE_EXPORT Postable {
 public:
  virtual ~Postable() = default;

  /// Sends the release on its way, so that the store gets it before any later request of this driver for the
  /// key, and does not wait. `listener` may be null; otherwise it hears of the outcome, outside all mutexes
  /// of the driver, on the thread that has read the reply: one that waits for another reply, or one in
  /// awaitPosted(), perhaps before this call returns. A store that says nothing for the I/O timeout is an
  /// outcome too. The driver's end is none: then nobody hears of it. False: not sent, since there is no
  /// connection, it is not known whether this store takes it so, or 1,024 are under way; release() it.
  [[nodiscard]] virtual bool postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) = 0;

  /// Returns when the outcomes of all that was posted before have been read, or at `deadline`. Core calls it
  /// soon after a post, unless other calls have read the reply by then.
  virtual void awaitPosted(Instant deadline) noexcept = 0;
};

/// The store's place can be taken by another server, which may lack some claims, or by one that has restarted
/// without them; the driver can tell. Core then renews all leases at once.
class LOCKKEEPER_CORE_EXPORT DoubtReporting {
 public:
  virtual ~DoubtReporting() = default;

  /// From now on, as long as it lives, `listener` hears claimsInDoubt() when calls begin to lead to another
  /// server, or to one that has restarted: before any call gets an answer from there. Thread-safe.
  virtual void addDoubtListener(std::weak_ptr<LossListener> listener) = 0;

  /// How often core calls look() while it keeps leases; empty where calls notice a change soon enough. No
  /// I/O.
  virtual std::optional<std::chrono::milliseconds> lookEvery() const = 0;

  /// Finds out whether another server has taken over, lest that stay unnoticed while nobody calls. One
  /// bounded attempt; when it fails, the next look is soon enough. Thread-safe.
  virtual void look(Instant deadline) noexcept = 0;
};

/// For drivers: the listeners that were added. Thread-safe.
class LOCKKEEPER_CORE_EXPORT LossListeners {
 public:
  /// As LossReporting::addLossListener() and DoubtReporting::addDoubtListener().
  void add(std::weak_ptr<LossListener> listener);
  /// Informs all listeners that still exist. Does not block.
  void tell(std::span<const Token> tokens) const noexcept;
  /// The same for claimsInDoubt().
  void tellDoubt() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<LossListener>> listeners_;
};

}  // namespace lockkeeper
