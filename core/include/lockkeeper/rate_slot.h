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

/// A place in a queue that lets callers go at a constant rate, or none: one that was default-constructed or
/// moved from is as one that was refused. Movable, not copyable, one thread at a time; may outlive the
/// limiter. Destroying it does nothing: the slot stays taken, and nobody else goes at that time.
class LOCKKEEPER_CORE_EXPORT RateSlot {
 public:
  RateSlot() = default;
  RateSlot(RateSlot&& other) noexcept : state_(std::exchange(other.state_, {})) {}
  RateSlot& operator=(RateSlot&& other) noexcept {
    state_ = std::exchange(other.state_, {});
    return *this;
  }

  /// Refused when the queue was full; then there is nothing to wait for.
  const Decision& decision() const noexcept { return state_.decision; }
  /// Whether there is a slot to wait for.
  explicit operator bool() const noexcept { return state_.decision.allowed; }

  /// When the holder may go, on the limiter's clock: never earlier than the store's slot.
  Instant at() const noexcept { return state_.at; }

  /// Blocks until at(). False when refused, or when `stop` or RateLimiter::stop() was triggered first: then
  /// giveBack() makes sense.
  [[nodiscard]] bool wait(std::stop_token stop = {});

  /// Frees a slot that is not used. True when the next caller gets it; false when others have queued behind
  /// it: they keep their slots, and this one stays empty. Throws RateDriver's errors. Blocks like
  /// RateLimiter::refund().
  bool giveBack();

 private:
  friend class detail::RateEngine;

  struct State {
    std::shared_ptr<detail::RateEngine> engine{};
    Decision decision{};
    Instant at{};
    std::string key{};  // full
    RateLaw law{};
    std::int64_t cost = 0;  // 0: nothing to give back
    RateTime slot{};
  };

  explicit RateSlot(State state) noexcept : state_(std::move(state)) {}

  State state_;
};

}  // namespace lockkeeper
