#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/export.h"
#include "lockkeeper/limit/rate_law.h"

namespace lockkeeper {

/// What a store answers about one charge.
struct RateOutcome {
  std::int64_t granted = 0;  ///< How many of RateCharge::times fit.
  std::int64_t remaining = 0;
  std::chrono::microseconds retryAfter{0};  ///< Until one more `cost` fits; 0 when all did.
  std::chrono::microseconds resetAfter{0};
  std::int64_t storeTime = 0;  ///< µs on the store's own clock, at which it decided.
  RateTime slot{};             ///< Buckets: the store's time from which the first granted cost counts.
};

/// One key to be charged under one law, and the outcome.
struct RateCharge {
  std::string_view key;  ///< With namespace and policy; any bytes, 1 to 642 of them.
  const RateLaw* law;
  std::int64_t cost = 1;   ///< 0 to law->limit; 0 always fits and changes nothing.
  std::int64_t times = 1;  ///< Callers who want `cost` each, 1 to 1000: as many are granted as fit.
  /// leakyQueue: how long the first caller may have to wait for its slot at most; a later slot is refused.
  std::chrono::microseconds longestWait{0};
  RateOutcome outcome{};
};

/// Something to be given back. Buckets and windows never hold more than when they are full.
struct RateRefund {
  std::string_view key;
  const RateLaw* law;
  std::int64_t cost = 1;
  std::optional<RateTime> slot{};  ///< leakyQueue, and needed there: the slot that was given.
};

/// The rate limits of one store: a capability of a LockDriver, or an object by itself. Each call is one
/// bounded attempt. Thread-safe; blocks until `deadline` plus one I/O timeout at most. Throws what LockDriver
/// throws, and LockTimeout when others keep a key until then: the store works, and nothing was charged.
///
/// The store decides in one atomic step, on its own clock and in whole numbers, as limit/rate_rules.h says,
/// and drops states without a meaning (a full bucket, an empty window). A key has one state for each kind
/// (one for all bucket kinds), whatever the law: a changed law finds the old state.
class LOCKKEEPER_CORE_EXPORT RateDriver {
 public:
  virtual ~RateDriver() = default;

  /// Charges all of `charges`, whose keys differ, or none: each outcome says whether its own part fits.
  /// `times` is more than 1 only for a single charge. What is refused changes nothing.
  virtual void take(std::span<RateCharge> charges, Instant deadline) = 0;

  /// The outcomes that take() would have, without charging.
  virtual void peek(std::span<RateCharge> charges, Instant deadline) = 0;

  /// Gives `cost` back. Returns false if that is impossible: nothing is used, or others queued after the
  /// slot.
  virtual bool refund(const RateRefund& refund, Instant deadline) = 0;

  /// Forgets the key.
  virtual void reset(std::string_view key, RateKind kind, Instant deadline) = 0;

  /// As LockDriver::name().
  virtual std::string name() const { return {}; }

  /// Whether deciding costs no round trip, so that core need not save calls.
  virtual bool isLocal() const noexcept { return false; }

  /// The part of the store that has the key, below mostParts, for a store whose parts fail one by one: while
  /// one part does not answer, keys of other parts are still asked for.
  virtual std::size_t partOf(std::string_view /*key*/) const noexcept { return 0; }
  static constexpr std::size_t mostParts = 16;
};

}  // namespace lockkeeper
