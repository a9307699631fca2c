#include "lockkeeper/rate_limiter.h"

#include <utility>
#include <vector>

#include "limit/rate_engine.h"
#include "lockkeeper/internal/backoff.h"

namespace lockkeeper {

RateLimiter::RateLimiter(std::shared_ptr<RateDriver> driver, RateLimiterOptions options)
    : engine_(std::make_shared<detail::RateEngine>(std::move(driver), std::move(options))) {}

RateLimiter::RateLimiter(RateLimiter&&) noexcept = default;
RateLimiter& RateLimiter::operator=(RateLimiter&&) noexcept = default;
RateLimiter::~RateLimiter() = default;

Decision RateLimiter::take(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return engine_->take(key, policy, cost);
}

Decision RateLimiter::take(std::span<RateTake> takes) { return engine_->take(takes); }

Decision RateLimiter::take(std::initializer_list<RateTake> takes) {
  std::vector<RateTake> all(takes);
  return engine_->take(all);
}

Decision RateLimiter::takeOrWait(std::string_view key, const RatePolicy& policy, const RateWait& wait,
                                 std::int64_t cost) {
  return engine_->takeOrWait(key, policy, wait, cost);
}

RateSlot RateLimiter::reserve(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return engine_->reserve(key, policy, cost, std::chrono::microseconds::max());
}

Decision RateLimiter::peek(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return engine_->peek(key, policy, cost);
}

bool RateLimiter::refund(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return engine_->refund(key, policy, cost);
}

void RateLimiter::reset(std::string_view key, const RatePolicy& policy) { engine_->reset(key, policy); }

bool RateSlot::wait(std::stop_token stop) {
  return decision_.allowed && pauseUntil(engine_->clock(), at_, stop);
}

bool RateSlot::giveBack() {
  const std::int64_t cost = std::exchange(cost_, 0);
  return engine_->giveBack({.key = key_, .law = &law_, .cost = cost, .slot = slot_});
}

}  // namespace lockkeeper
