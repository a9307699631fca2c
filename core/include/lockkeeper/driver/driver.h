#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/base/token.h"
#include "lockkeeper/error.h"
#include "lockkeeper/export.h"
#include "lockkeeper/permit/share.h"

namespace lockkeeper {

/// Strictly increases, per key, from grant to grant. A resource that remembers the highest one it has seen
/// refuses a holder whose lease has ended without its noticing.
using Fence = std::uint64_t;

/// Who asks for, or holds, which key.
struct Claim {
  std::string_view key;  ///< 1 to 512 bytes; every sequence of bytes is a key of its own.
  Token token;
  std::string_view owner;  ///< A public label such as "host:pid": at most 64 printable characters, no '@'.
  std::optional<Share> share{};  ///< Empty: all of the key. Only a driver with Permits gets one.
};

/// One attempt to take a key.
struct AcquireRequest {
  Claim claim;
  std::chrono::milliseconds ttl;  ///< 10 ms to 24 h.
  Instant deadline;               ///< The attempt ends by then, give or take one I/O timeout.
  bool resend = false;            ///< The same claim was sent before and its outcome was not seen.
  /// How many callers of this process could hold the key one after the other. A driver may reserve up to this
  /// many fences in a row, so that these callers need not ask the store.
  std::uint32_t localHolders = 1;
  /// For Permits: do not queue behind other waiters, because they wait for the caller's other share.
  bool ahead = false;
  /// For Batchable: the caller asks again while a key is busy. So the driver may also claim keys behind the
  /// busy one, if it has released them when it returns.
  bool waits = false;
};

/// The store granted the claim.
struct Granted {
  /// The time of the clock before the first byte was sent, so that our lease ends no later than the store's.
  Instant leasedFrom;
  std::chrono::milliseconds leasedFor;  ///< As long as the store made the lease, whatever was asked for.
  /// Empty when the driver promises none. A share gets a new fence only if it takes the last permit;
  /// otherwise it has the key's last one, so that data with a higher fence is known to be newer.
  std::optional<Fence> fence;
  /// How many callers may hold the key one after the other, with `fence`, `fence` + 1 and so on, all of them
  /// new. 1 when the claim held the key already.
  std::uint32_t localHolders = 1;
  /// How long the key may be handed on to them. 0: for a quarter of the time that the request took, so that
  /// processes that poll find the key free nearly as often as if it were not handed on.
  std::chrono::nanoseconds handOverFor{0};
};

/// Somebody else holds the key.
struct Busy {
  std::optional<std::chrono::milliseconds> retryAfter;  ///< When its lease ends, where the store tells.
};

/// The result of one attempt.
using AcquireResult = std::variant<Granted, Busy>;

/// The outcome of one renewal.
enum class RenewOutcome {
  renewed,       ///< The lease runs for `leasedFor` again, from `leasedFrom`.
  notOwner,      ///< The key is free or somebody else's: the lock is lost.
  ownerUnknown,  ///< The store cannot tell any more whose the key is: the lock counts as lost.
  unavailable,   ///< Certainly not renewed; the old lease runs on.
  unknown,       ///< Perhaps renewed; the old lease runs on at least.
};

/// One lease to renew, and the outcome.
struct Renewal {
  Claim claim;
  std::chrono::milliseconds ttl;  ///< From now on; shorter than what is left makes the lease end sooner.
  bool atLeast = false;           ///< For DoubtReporting: a lease that runs for longer stays as it is.
  RenewOutcome outcome = RenewOutcome::unknown;
  Instant leasedFrom{};  ///< As in Granted; written with the outcome `renewed`.
  std::chrono::milliseconds leasedFor{0};
  std::string cause{};  ///< Why the outcome is unavailable or unknown: an error's message.
  /// If set, a driver may call it, on the thread of renew(), when it has written this outcome. One that asks
  /// several servers does, so that the slowest does not delay the others.
  std::function<void(const Renewal&)> told{};
};

/// The outcome of one release.
enum class ReleaseOutcome {
  released,      ///< The claim held the key, and the key is free now.
  notOwner,      ///< The claim does not hold the key. Nothing was changed.
  ownerUnknown,  ///< The store cannot tell whose the key is. Nothing was changed.
};

/// The present holder of a key, or of a share of it, as far as the store tells it.
struct Holder {
  std::string owner;                                   ///< Its label; empty for a foreign client.
  std::optional<std::chrono::milliseconds> remaining;  ///< Until its lease ends; empty: see `endless`.
  std::optional<Fence> fence;                          ///< The last one that was reserved for the grant.
  std::string grantId{};  ///< Tells this grant from others of the key where the fence does not; not secret.
  std::optional<Share> share{};  ///< What it has of the key; empty: all.
  bool endless = false;          ///< Its lease never ends. Without that and `remaining`, nobody knows.
};

/// What a store's fences are worth.
enum class FencePromise {
  none,                   ///< Grants carry no fence.
  whileStoreKeepsWrites,  ///< Fences increase as long as the store does not lose acknowledged writes.
  durable,                ///< Also across crashes and restarts, and a failover to a server with all commits.
};

/// What a store promises; docs/guarantees.md says under which assumptions.
struct Promises {
  FencePromise fence = FencePromise::none;
  std::string durability;  ///< One line for people: what a crash of the store does to its locks.
};

/// Thrown by a driver that has tried to withdraw the claim, and has not seen the outcome. The withdrawal may
/// arrive late, so core does not use the token again. After any other OutcomeUnknown it does, with `resend`.
class LOCKKEEPER_CORE_EXPORT WithdrawalUnknown : public OutcomeUnknown {
 public:
  using OutcomeUnknown::OutcomeUnknown;
};

/// One store. Each call is one bounded attempt, without retry, sleep or a thread of its own. Thread-safe.
/// Blocks until `deadline` plus one I/O timeout at most. A claim that is sent twice acts as if sent once.
///
/// Errors: StoreUnavailable (certainly not applied), OutcomeUnknown and ProtocolError (perhaps applied),
/// Deadlock, ConfigError; std::invalid_argument for a value that this store does not support, such as a ttl:
/// then nothing has changed. A reply that was lost, cut or late never counts as an answer.
///
/// An error is about this call only: after StoreUnavailable for a claim with `resend`, core assumes that the
/// earlier request may have been granted. A failed release is sent again, and may then find notOwner.
class LOCKKEEPER_CORE_EXPORT LockDriver {
 public:
  virtual ~LockDriver() = default;

  /// Claims the key for `ttl` if it is free. If the same claim holds it already, it is granted again with the
  /// same fence and a full ttl.
  [[nodiscard]] virtual AcquireResult acquire(const AcquireRequest& request) = 0;

  /// Renews all of `renewals`, up to 1,024, and writes the outcome of each. Never throws for reasons of the
  /// store. Several calls may be under way at a time.
  virtual void renew(std::span<Renewal> renewals, Instant deadline) = 0;

  /// Frees the key if, and only if, the claim holds it.
  virtual ReleaseOutcome release(const Claim& claim, Instant deadline) = 0;

  /// The present holder of the key; empty when it is free.
  virtual std::optional<Holder> holder(std::string_view key, Instant deadline) = 0;

  /// What the store promises, as far as it is known by now. No I/O.
  virtual Promises promises() const = 0;

  /// The store in events, such as "redis://host:6379/0", without secrets. No I/O.
  virtual std::string name() const { return {}; }

  /// For capability(): the driver's object of exactly this type, or null, as capabilityOf() returns it. No
  /// I/O. A decorator asks the driver that it wraps, also for capabilities that it does not know.
  virtual void* findCapability(const std::type_info& /*type*/) noexcept { return nullptr; }

  /// Why the driver lacks this capability, for messages: a clause such as "a quorum cannot count permits", or
  /// nothing. No I/O. A decorator asks the driver that it wraps.
  virtual std::string_view whyNot(const std::type_info& /*type*/) const noexcept { return {}; }
};

/// The driver as a `Capability`, or null if its store lacks it. Lives as long as the driver. No I/O.
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
