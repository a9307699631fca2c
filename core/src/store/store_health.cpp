#include "store/store_health.h"

namespace lockkeeper::detail {

namespace {
constexpr Backoff pauses{std::chrono::milliseconds{50}, std::chrono::seconds{1}};
}

StoreHealth::StoreHealth(std::chrono::nanoseconds longestTry) : longestTry_(longestTry), backoff_(pauses) {}

bool StoreHealth::mayTry(Instant now) {
  if (!isDown()) return true;
  const std::lock_guard guard(mutex_);
  if (now < nextTry_) return false;
  nextTry_ = now + longestTry_;  // should this one never come back
  return true;
}

void StoreHealth::succeeded() {
  if (!isDown()) return;
  const std::lock_guard guard(mutex_);
  backoff_ = pauses;
  down_.store(false, std::memory_order_release);
}

void StoreHealth::failed(const Error& error, Instant started, Instant now, Random& random) {
  if (!isOutage(error.code())) return succeeded();
  const std::lock_guard guard(mutex_);
  lastFailure_ = {error.code(), error.what()};
  if (isDown() && started < failedAt_) return;  // one of many that were under way together
  failedAt_ = now;
  nextTry_ = now + backoff_.next(random);
  down_.store(true, std::memory_order_release);
}

StoreFailure StoreHealth::lastFailure() const {
  const std::lock_guard guard(mutex_);
  return lastFailure_;
}

Instant StoreHealth::nextTry() const {
  const std::lock_guard guard(mutex_);
  return nextTry_;
}

}  // namespace lockkeeper::detail
