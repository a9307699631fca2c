#include "lockkeeper/limit/rate_rules.h"

#include <algorithm>

namespace lockkeeper {

using std::chrono::microseconds;

namespace {

__extension__ using Wide = __int128;  // holds the product of any two 64-bit numbers

constexpr Wide mostExact = Wide{1} << 53;

// A law with another denominator may have written the parts: less than a microsecond, rounded up.
RateTime bucketFullAt(const RateLaw& law, const RateState& state) {
  if (state.second >= law.parts) return {state.first + 1, 0};
  return {state.first, state.second};
}

RateTime bucketCountsFrom(const RateLaw& law, const RateState& state, std::int64_t now) {
  return std::max(bucketFullAt(law, state), RateTime{now, 0});
}

// Not an earlier window than the one that was used last: a clock that goes back opens none again.
RateState windowAt(const RateLaw& law, const RateState& state, std::int64_t now) {
  const std::int64_t current = now - now % law.period;
  const std::int64_t used = state.first - state.first % law.period;
  return used >= current ? RateState{used, state.second} : RateState{current, 0};
}

RateOutcome bucketOutcome(const RateCharge& charge, const RateReading& reading) {
  const RateLaw& law = *charge.law;
  const RateTime now{reading.now, 0};
  const RateTime fullAt = bucketCountsFrom(law, reading.state, reading.now);
  const RateTime level = law.minus(fullAt, now);
  const RateTime size = law.lengthOf(law.limit);
  RateOutcome outcome;
  outcome.remaining = level < size ? law.unitsIn(law.minus(size, level)) : 0;
  outcome.resetAfter = roundedUp(level);
  const RateTime granted = law.lengthOf(charge.cost * reading.granted);
  outcome.slot = granted < fullAt ? std::max(now, law.minus(fullAt, granted)) : now;
  if (reading.granted < charge.times) {
    const RateTime wanted = law.plus(level, law.lengthOf(charge.cost));
    const RateTime room = roomOf(charge);
    if (room < wanted) outcome.retryAfter = roundedUp(law.minus(wanted, room));
  }
  return outcome;
}

RateOutcome windowOutcome(const RateCharge& charge, const RateReading& reading) {
  const RateLaw& law = *charge.law;
  const RateState window = windowAt(law, reading.state, reading.now);
  const microseconds untilEnd{window.first + law.period - reading.now};
  RateOutcome outcome;
  outcome.remaining = std::max<std::int64_t>(law.limit - window.second, 0);
  if (window.second > 0) outcome.resetAfter = untilEnd;
  if (reading.granted < charge.times) outcome.retryAfter = untilEnd;
  return outcome;
}

RateOutcome logOutcome(const RateCharge& charge, const RateReading& reading) {
  const RateLaw& law = *charge.law;
  const auto untilOut = [&](std::int64_t admitted) {
    return microseconds{admitted + law.period - reading.now};
  };
  RateOutcome outcome;
  outcome.remaining = std::max<std::int64_t>(law.limit - reading.state.first, 0);
  if (reading.state.first > 0) outcome.resetAfter = untilOut(reading.state.second);
  if (reading.granted < charge.times) outcome.retryAfter = untilOut(reading.leavesFirst);
  return outcome;
}

// One that is earlier than the last would be unsorted, where the clock went back: as late as the last, then.
void append(RateLog& log, const RateLaw& law, std::int64_t units, std::int64_t now) {
  log.erase(log.begin(), std::upper_bound(log.begin(), log.end(), now - law.period));
  log.insert(log.end(), static_cast<std::size_t>(units), log.empty() ? now : std::max(now, log.back()));
}

}  // namespace

const char* toString(RateKind kind) noexcept {
  switch (kind) {
    case RateKind::tokenBucket:
      return "token-bucket";
    case RateKind::leakyQueue:
      return "leaky-queue";
    case RateKind::slidingWindow:
      return "sliding-window";
    case RateKind::fixedWindow:
      return "fixed-window";
  }
  return "unknown";
}

RateTime RateLaw::lengthOf(std::int64_t units) const {
  if (parts == 1) return {units * period, 0};  // checked when the policy was made
  const Wide total = Wide{units} * period;
  return {static_cast<std::int64_t>(total / parts), static_cast<std::int64_t>(total % parts)};
}

std::int64_t RateLaw::unitsIn(RateTime length) const {
  if (parts == 1) return length.micros / period;
  const Wide units = (Wide{length.micros} * parts + length.parts) / period;
  return static_cast<std::int64_t>(std::min(units, mostExact));
}

std::int64_t timesIn(const RateCharge& charge, std::int64_t left) {
  return charge.cost == 0 ? charge.times : std::min(charge.times, left / charge.cost);
}

RateTime roomOf(const RateCharge& charge) {
  const RateLaw& law = *charge.law;
  const RateTime size = law.lengthOf(law.limit);
  if (law.kind != RateKind::leakyQueue || charge.longestWait.count() >= size.micros) return size;
  return std::min(size, law.plus({charge.longestWait.count(), 0}, law.lengthOf(charge.cost)));
}

std::int64_t admit(const RateCharge& charge, RateState& state, std::int64_t now) {
  const RateLaw& law = *charge.law;
  if (!isBucket(law.kind)) {
    state = windowAt(law, state, now);
    const std::int64_t left = std::max<std::int64_t>(law.limit - state.second, 0);
    const std::int64_t granted = timesIn(charge, left);
    state.second += granted * charge.cost;
    return granted;
  }
  const RateTime from = bucketCountsFrom(law, state, now);
  const RateTime level = law.minus(from, {now, 0});
  const RateTime room = roomOf(charge);
  const std::int64_t left = level < room ? law.unitsIn(law.minus(room, level)) : 0;
  const std::int64_t granted = timesIn(charge, left);
  if (granted * charge.cost == 0) return granted;
  const RateTime fullAt = law.plus(from, law.lengthOf(granted * charge.cost));
  state = {fullAt.micros, fullAt.parts};
  return granted;
}

bool applyRefund(const RateRefund& refund, RateState& state, std::int64_t now) {
  const RateLaw& law = *refund.law;
  if (!isBucket(law.kind)) {
    state = windowAt(law, state, now);
    const std::int64_t given = std::min(refund.cost, state.second);
    state.second -= given;
    return given > 0;
  }
  const RateTime fullAt = bucketFullAt(law, state);
  const RateTime length = law.lengthOf(refund.cost);
  if (fullAt <= RateTime{now, 0}) return false;
  if (refund.slot && fullAt != law.plus(*refund.slot, length)) return false;
  const RateTime before = length < fullAt ? law.minus(fullAt, length) : RateTime{};
  state = {before.micros, before.parts};
  return true;
}

RateReading lookAt(const RateCharge& charge, const RateState& state, std::int64_t now) {
  RateState after = state;
  return {.state = state, .now = now, .granted = admit(charge, after, now)};
}

RateReading lookAt(const RateCharge& charge, const RateLog& log, std::int64_t now) {
  const RateLaw& law = *charge.law;
  const auto inside = std::upper_bound(log.begin(), log.end(), now - law.period);
  const std::int64_t used = log.end() - inside;
  const std::int64_t left = std::max<std::int64_t>(law.limit - used, 0);
  const std::int64_t tooMany = used + charge.cost - law.limit;
  return {.state = {used, used > 0 ? log.back() : 0},
          .now = now,
          .granted = timesIn(charge, left),
          .leavesFirst = tooMany > 0 ? inside[tooMany - 1] : 0};
}

RateReading admit(const RateCharge& charge, RateLog& log, std::int64_t now) {
  const std::int64_t granted = lookAt(charge, log, now).granted;
  append(log, *charge.law, granted * charge.cost, now);
  RateReading reading = lookAt(charge, log, now);
  reading.granted = granted;
  return reading;
}

bool applyRefund(const RateRefund& refund, RateLog& log, std::int64_t now) {
  append(log, *refund.law, 0, now);
  const auto given = std::min(static_cast<std::size_t>(refund.cost), log.size());
  log.erase(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(given));
  return given > 0;
}

std::int64_t expiryOf(const RateLaw& law, const RateState& state) {
  if (!isBucket(law.kind)) return state.second > 0 ? state.first + law.period : 0;
  return roundedUp(bucketFullAt(law, state)).count();
}

RateOutcome outcomeOf(const RateCharge& charge, const RateReading& reading) {
  RateOutcome outcome = isBucket(charge.law->kind)                    ? bucketOutcome(charge, reading)
                        : charge.law->kind == RateKind::slidingWindow ? logOutcome(charge, reading)
                                                                      : windowOutcome(charge, reading);
  outcome.granted = reading.granted;
  outcome.storeTime = reading.now;
  return outcome;
}

}  // namespace lockkeeper
