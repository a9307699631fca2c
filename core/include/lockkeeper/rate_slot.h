#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/export.h"
#include "lockkeeper/rate_decision.h"

namespace lockkeeper {

class RatePolicy;

namespace detail {
class RateEngine;
}

/// A place in a queue that lets callers go at a constant rate. Movable, one thread at a time; may outlive the
/// limiter. Destroying it does nothing: the slot stays taken, and nobody else goes at that time.
class LOCKKEEPER_CORE_EXPORT RateSlot {
 public:
  /// Refused when the queue was full; then there is nothing to wait for.
  const Decision& decision() const noexcept { return decision_; }
  /// Whether there is a slot to wait for.
  explicit operator bool() const noexcept { return decision_.allowed; }

  /// When the holder may go, on the limiter's clock: never earlier than the store's slot.
  Instant at() const noexcept { return at_; }

  /// Blocks until at(). False when refused, or when `stop` was triggered first: then giveBack() makes sense.
  bool wait(std::stop_token stop = {});

  /// Frees a slot that is not used. True when the next caller gets it; false when others have queued behind
  /// it: they keep their slots, and this one stays empty. Throws RateDriver's errors. Blocks like
  /// RateLimiter::refund().
  bool giveBack();

 private:
  friend class detail::RateEngine;
  RateSlot(std::shared_ptr<detail::RateEngine> engine, Decision decision) noexcept
      : engine_(std::move(engine)), decision_(decision) {}

  std::shared_ptr<detail::RateEngine> engine_;
  Decision decision_;
  Instant at_{};
  std::string key_;  // full
  RateLaw law_;
  std::int64_t cost_ = 0;  // 0: nothing to give back
  RateTime slot_;
};

}  // namespace lockkeeper
