#include "lock/abandoned_claims.h"

namespace lockkeeper::detail {

namespace {

// What is abandoned ends with its ttl anyway: in a long outage, forgetting the rest costs only time.
constexpr std::size_t most = 4096;

}  // namespace

AbandonedClaims::AbandonedClaims(std::shared_ptr<LockDriver> driver, Environment environment,
                                 std::string owner, std::chrono::nanoseconds operationTimeout,
                                 std::chrono::nanoseconds retryPause)
    : driver_(std::move(driver)),
      environment_(std::move(environment)),
      owner_(std::move(owner)),
      operationTimeout_(operationTimeout),
      retryPause_(retryPause) {}

void AbandonedClaims::add(const Claim& claim, Instant until) {
  if (claims_.size() >= most) return;
  claims_.push_back({std::string(claim.key), claim.token, until});
  tryAt_ = environment_.clock->now();
}

void AbandonedClaims::release(std::unique_lock<std::mutex>& held) {
  const Instant deadline = environment_.clock->now() + operationTimeout_;
  while (!claims_.empty()) {
    Abandoned claim = std::move(claims_.front());
    claims_.pop_front();
    if (claim.until <= environment_.clock->now()) continue;
    held.unlock();
    const bool done = answered(claim, deadline);
    held.lock();
    if (done) continue;
    // The store does not answer now: leave the rest for later, too, so that renewals are not held up.
    claims_.push_front(std::move(claim));
    tryAt_ = environment_.clock->now() + retryPause_;
    return;
  }
}

bool AbandonedClaims::answered(const Abandoned& claim, Instant deadline) {
  const Instant began = environment_.clock->now();
  try {
    driver_->release({claim.key, claim.token, owner_}, deadline);
    return true;
  } catch (const Error& error) {
    environment_.tell({.kind = EventKind::attemptFailed,
                       .key = claim.key,
                       .store = driver_->name(),
                       .began = began,
                       .ended = environment_.clock->now(),
                       .error = error.code(),
                       .text = error.what()});
    return error.code() == ErrorCode::config;  // will not get better by itself
  }
}

}  // namespace lockkeeper::detail
