#pragma once

#include <cstdint>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

// The arithmetic that all stores share. A store keeps two numbers of a key, reads its clock once, and decides
// as admit() does; what it found then becomes an answer by outcomeOf(). A store that decides by itself (in a
// script, in a statement) must agree with admit() bit for bit: lockkeeper::testing compares them. Times are
// µs on the store's clock. A clock that goes back refuses more, never less.

/// What a store keeps of a key. Two zeros are the state of a key that was never used.
///
/// Buckets: when the bucket is full again (`first` µs and `second` / law.parts). Windows of the calendar:
/// where the window starts, and what was used in it. Sliding windows are a RateLog.
struct RateState {
  std::int64_t first = 0;
  std::int64_t second = 0;

  friend bool operator==(const RateState&, const RateState&) = default;
};

/// Whether a number that a store keeps for a key can be one of these rules': all that they write are below
/// 2^53 and not negative (see RateLaw). A driver whose store holds another one has found what somebody else
/// has written: it throws ProtocolError for that key, since times computed from it would overflow.
constexpr bool canBeOfState(std::int64_t number) noexcept {
  return number >= 0 && number < std::int64_t{1} << 53;
}

/// What an atomic step has found: the state that it left, the store's time, how many times the cost was
/// granted. For sliding windows, `state.first` is what is used, `state.second` the time of the latest
/// admission, and `leavesFirst` the admission that must have left before one more `cost` fits, 0 for none.
struct RateReading {
  RateState state;
  std::int64_t now = 0;
  std::int64_t granted = 0;
  std::int64_t leavesFirst = 0;
};

/// How often charge.cost fits into `left` units, at most charge.times; a cost of 0 always does.
LOCKKEEPER_CORE_EXPORT std::int64_t timesIn(const RateCharge& charge, std::int64_t left);

/// Decides for a bucket or a window of the calendar: changes `state` and returns how often charge.cost was
/// granted, at most charge.times.
LOCKKEEPER_CORE_EXPORT std::int64_t admit(const RateCharge& charge, RateState& state, std::int64_t now);

/// Gives back what `refund` says; false when nothing was. Not for sliding windows.
LOCKKEEPER_CORE_EXPORT bool applyRefund(const RateRefund& refund, RateState& state, std::int64_t now);

/// From when on `state` may be dropped, because the key is as if never used: µs, rounded up. Not for sliding
/// windows.
LOCKKEEPER_CORE_EXPORT std::int64_t expiryOf(const RateLaw& law, const RateState& state);

/// A sliding window: when each unit was admitted, oldest first.
using RateLog = std::vector<std::int64_t>;

/// What admit() would find in a bucket or a window of the calendar, without charging.
LOCKKEEPER_CORE_EXPORT RateReading lookAt(const RateCharge& charge, const RateState& state, std::int64_t now);
/// The same for a sliding window.
LOCKKEEPER_CORE_EXPORT RateReading lookAt(const RateCharge& charge, const RateLog& log, std::int64_t now);

/// Decides for a sliding window: changes `log`, and returns what it has left.
LOCKKEEPER_CORE_EXPORT RateReading admit(const RateCharge& charge, RateLog& log, std::int64_t now);

/// Gives back the oldest units that count: the latest may be somebody else's, and without them the window
/// would admit more. False when there are none.
LOCKKEEPER_CORE_EXPORT bool applyRefund(const RateRefund& refund, RateLog& log, std::int64_t now);

/// The level that a bucket must not pass when `charge` is granted: its size, or less where a queue is asked
/// for a slot that is not far.
LOCKKEEPER_CORE_EXPORT RateTime roomOf(const RateCharge& charge);

/// What a reading means to the caller.
LOCKKEEPER_CORE_EXPORT RateOutcome outcomeOf(const RateCharge& charge, const RateReading& reading);

}  // namespace lockkeeper
