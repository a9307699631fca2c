#include "lockkeeper/rate_limiter.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "limit/rate_engine.h"

namespace lockkeeper {

RateLimiter::RateLimiter(std::shared_ptr<RateDriver> driver, RateLimiterOptions options)
    : engine_(std::make_shared<detail::RateEngine>(std::move(driver), std::move(options))) {}

RateLimiter::RateLimiter(RateLimiter&&) noexcept = default;
RateLimiter& RateLimiter::operator=(RateLimiter&&) noexcept = default;
RateLimiter::~RateLimiter() = default;

// By value: a callback of the call, such as a Listener, may move or destroy the limiter.
std::shared_ptr<detail::RateEngine> RateLimiter::engine() const {
  if (!engine_) throw std::logic_error("this RateLimiter was moved from: it can only be assigned to");
  return engine_;
}

Decision RateLimiter::take(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return engine()->take(key, policy, cost);
}

Decision RateLimiter::take(std::span<RateTake> takes) { return engine()->take(takes); }

Decision RateLimiter::take(std::initializer_list<RateTake> takes) {
  std::vector<RateTake> all(takes);
  return engine()->take(all);
}

Decision RateLimiter::takeOrWait(std::string_view key, const RatePolicy& policy, const RateWait& wait,
                                 std::int64_t cost) {
  return engine()->takeOrWait(key, policy, wait, cost);
}

RateSlot RateLimiter::reserve(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return engine()->reserve(key, policy, cost);
}

Decision RateLimiter::peek(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return engine()->peek(key, policy, cost);
}

bool RateLimiter::refund(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return engine()->refund(key, policy, cost);
}

void RateLimiter::reset(std::string_view key, const RatePolicy& policy) { engine()->reset(key, policy); }

void RateLimiter::stop() noexcept {
  if (engine_) engine_->stop();
}

const Environment& RateLimiter::environment() const { return engine()->environment(); }

bool RateSlot::wait(std::stop_token stop) {
  return state_.decision.allowed && state_.engine->pauseUntil(state_.at, stop);
}

bool RateSlot::giveBack() {
  const std::int64_t cost = std::exchange(state_.cost, 0);
  if (cost == 0) return false;
  return state_.engine->refund(
      RateRefund{.key = state_.key, .law = &state_.law, .cost = cost, .slot = state_.slot});
}

}  // namespace lockkeeper
