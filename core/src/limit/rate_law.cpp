#include "lockkeeper/driver/rate_law.h"

#include <algorithm>

#include "limit/wide.h"

namespace lockkeeper {

using detail::Wide;

namespace {
constexpr Wide mostExact = Wide{1} << 53;
}

const char* toString(RateKind kind) noexcept {
  switch (kind) {
    case RateKind::tokenBucket:
      return "token-bucket";
    case RateKind::leakyMeter:
      return "leaky-meter";
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

}  // namespace lockkeeper
