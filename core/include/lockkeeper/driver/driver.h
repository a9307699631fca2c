#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/driver/share.h"
#include "lockkeeper/driver/token.h"
#include "lockkeeper/error.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// Strictly increases, per key, from grant to grant. A resource that remembers the highest one it has seen
/// refuses a holder whose lease has ended without its noticing.
using Fence = std::uint64_t;

/// Who asks for, or holds, which key. `owner` is a label for people (such as "host:pid"): public, not secret,
/// at most 64 printable characters without '@'.
struct Claim {
  std::string_view key;
  Token token;
  std::string_view owner;
  /// Empty: all of the key. Only a driver that has Permits is given one. A claim keeps its share for life.
  std::optional<Share> share{};
};

/// One attempt at a key.
struct AcquireRequest {
  Claim claim;
  std::chrono::milliseconds ttl;
  Instant deadline;     ///< The attempt ends by then, give or take one I/O timeout.
  bool resend = false;  ///< The same claim was sent before and its outcome was not seen.
  /// So many holders of this process could use the grant one after the other, because they wait in line for
  /// the key. A driver that wants that reserves as many fences in a row, or fewer.
  std::uint32_t turns = 1;
  /// Only for a driver that has Permits. Its caller has another share of the key, and who waits for the key
  /// waits for that one: this claim is not held up by those who wait, and waits in front of them.
  bool ahead = false;
  /// The caller waits for a key that is busy, and will ask again. Of several keys that are claimed together,
  /// a driver may claim those behind the busy one, too, if it has given them back when it returns.
  bool waits = false;
};

/// The store granted the claim.
struct Granted {
  Instant leasedFrom;  ///< Not later than the moment from which the store counts the lease: read from the
                       ///< clock before the first byte of the request was sent.
  std::chrono::milliseconds leasedFor;  ///< As long as the store made the lease, whatever was asked for.
  /// Empty when the driver promises none. That of a share that does not take the last permit is not new: it
  /// is the last one that was given before, so that what was written with a higher one is known to be newer.
  std::optional<Fence> fence;
  /// So many holders may use it: the first has `fence`, the next one `fence` + 1, and so on; none of these
  /// was given before, and later grants have higher ones. 1 when the claim was granted before (a resend).
  std::uint32_t turns = 1;
  /// With `turns`: how long it may be handed on. 0: a quarter of the time that this request took, so that
  /// those who poll for the key elsewhere find it free nearly as often as before.
  std::chrono::nanoseconds stay{0};
};

/// Somebody else holds the key.
struct Busy {
  std::optional<std::chrono::milliseconds>
      retryAfter;  ///< When the present lease ends, where the store tells.
};

/// What came of one attempt.
using AcquireResult = std::variant<Granted, Busy>;

/// What came of one renewal.
enum class RenewOutcome {
  renewed,       ///< The lease runs for `leasedFor` again, from `leasedFrom`.
  notOwner,      ///< The key is free or somebody else's: the lock is lost.
  ownerUnknown,  ///< The store cannot tell any more whose the key is: the lock counts as lost.
  unavailable,   ///< Certainly not renewed; the old lease runs on.
  unknown,       ///< Perhaps renewed; the old lease runs on at least.
};

/// One lease to renew, and what came of it.
struct Renewal {
  Claim claim;
  std::chrono::milliseconds ttl;  ///< From now on; shorter than what is left makes the lease end sooner.
  bool atLeast = false;  ///< A lease that runs for longer than `ttl` stays as it is. Only a driver with
                         ///< DoubtReporting is asked so.
  RenewOutcome outcome = RenewOutcome::unknown;
  Instant leasedFrom{};  ///< As in Granted; written with the outcome `renewed`.
  std::chrono::milliseconds leasedFor{0};
  std::string cause{};  ///< Why the outcome is unavailable or unknown: an error's message.

  /// If set, a driver may call it as soon as it has written this outcome, from the thread that renew() runs
  /// on. A driver that asks several servers or sessions does so, so that the slowest does not delay the
  /// others.
  std::function<void(const Renewal&)> told{};
};

/// What came of one release.
enum class ReleaseOutcome {
  released,      ///< The claim held the key, and the key is free now.
  notOwner,      ///< The claim does not hold the key. Nothing was changed.
  ownerUnknown,  ///< The store cannot tell whose the key is. Nothing was changed.
};

/// The present holder of a key, or of a share of it, as far as the store tells it.
struct Holder {
  std::string owner;                                   ///< Its label; empty for a foreign client.
  std::optional<std::chrono::milliseconds> remaining;  ///< Until its lease ends; empty: see `endless`.
  std::optional<Fence> fence;  ///< Of a grant with several turns, that of the last one.
  std::string grantId{};  ///< Tells this grant from others of the key where the fence does not; not secret.
  std::optional<Share> share{};  ///< What it has of the key; empty: all.
  bool endless = false;  ///< Its lease never ends. Without that and `remaining`, the end is not known.
};

/// What a store's fences are worth.
enum class FencePromise {
  none,                   ///< Grants carry no fence.
  whileStoreKeepsWrites,  ///< Fences increase as long as the store does not lose acknowledged writes.
  durable,  ///< Fences increase across crashes and restarts of the store, and across a failover to a
            ///< server that has all commits.
};

/// What a store promises; docs/guarantees.md says under which assumptions.
struct Promises {
  FencePromise fence = FencePromise::none;
  std::string durability;  ///< One line for people: what a crash of the store does to its locks.
};

/// Thrown by a driver that has withdrawn the claim itself (it has given back what was granted, or left a
/// queue) and has not seen the outcome: the withdrawal may come late, and would then end whatever the same
/// token claims by that time. So core never claims with this token again. After any other OutcomeUnknown it
/// does, which finds out what became of the claim.
class LOCKKEEPER_CORE_EXPORT WithdrawalUnknown : public OutcomeUnknown {
 public:
  using OutcomeUnknown::OutcomeUnknown;
};

/// One store. Each call is one bounded attempt: no retry, no sleep, no thread of its own. All calls are
/// thread-safe, block until `deadline` plus one I/O timeout at most, and are idempotent per token: a claim
/// that is sent again has the effect of being sent once.
///
/// Errors: StoreUnavailable (certainly not applied), OutcomeUnknown and ProtocolError (perhaps applied),
/// Deadlock, ConfigError; std::invalid_argument for what this store cannot give, such as a ttl: then nothing
/// has changed. A reply that was lost, cut or late is never taken for an answer.
class LOCKKEEPER_CORE_EXPORT LockDriver {
 public:
  virtual ~LockDriver() = default;

  /// Claims the key for `ttl` if it is free. When the same claim holds it already (a resend), grants again
  /// with the same fence and a full ttl.
  [[nodiscard]] virtual AcquireResult acquire(const AcquireRequest& request) = 0;

  /// Renews all of `renewals` (LockManager passes up to 1,024) and writes the outcome of each. Never throws
  /// for reasons of the store. Several calls may be under way at a time.
  virtual void renew(std::span<Renewal> renewals, Instant deadline) = 0;

  /// Frees the key if, and only if, the claim holds it.
  virtual ReleaseOutcome release(const Claim& claim, Instant deadline) = 0;

  /// Who holds the key now; empty when it is free.
  virtual std::optional<Holder> holder(std::string_view key, Instant deadline) = 0;

  /// What the store promises, as far as it is known by now. No I/O.
  virtual Promises promises() const = 0;

  /// The store in events, such as "redis://host:6379/0", without secrets. No I/O.
  virtual std::string name() const { return {}; }

  /// What the driver can do beyond this interface, for capability(): a pointer to its object of exactly this
  /// type, or null when the store cannot do that. No I/O. A driver answers with capabilityOf(); a decorator
  /// passes the question on to the driver behind it, and so every capability that it does not know.
  virtual void* findCapability(const std::type_info& /*type*/) noexcept { return nullptr; }

  /// Why the store cannot do that, for messages: a clause such as "a quorum cannot count permits"; empty when
  /// there is nothing to say but that it cannot. No I/O. A decorator passes the question on.
  virtual std::string_view whyNot(const std::type_info& /*type*/) const noexcept { return {}; }
};

/// The driver as a `Capability` (of capabilities.h, rate_driver.h, …), or null when its store cannot do that.
/// The pointer lives as long as the driver. No I/O.
template <class Capability>
Capability* capability(LockDriver& driver) noexcept {
  return static_cast<Capability*>(driver.findCapability(typeid(Capability)));
}

/// The same for a shared driver; the returned pointer keeps the driver alive.
template <class Capability>
std::shared_ptr<Capability> capability(const std::shared_ptr<LockDriver>& driver) noexcept {
  auto* found = driver ? capability<Capability>(*driver) : nullptr;
  return found != nullptr ? std::shared_ptr<Capability>(driver, found) : nullptr;
}

/// For LockDriver::findCapability(): `driver` as the one of `Capabilities` that `type` names, or null.
template <class... Capabilities, class Driver>
void* capabilityOf(Driver& driver, const std::type_info& type) noexcept {
  void* found = nullptr;
  ((type == typeid(Capabilities) ? static_cast<void>(found = static_cast<Capabilities*>(&driver))
                                 : static_cast<void>(0)),
   ...);
  return found;
}

}  // namespace lockkeeper
