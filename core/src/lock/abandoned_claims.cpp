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
}

void AbandonedClaims::release(std::unique_lock<std::mutex>& held) {
  releasing_ = true;
  for (bool done = true; done && !claims_.empty();) {
    Abandoned claim = std::move(claims_.front());
    claims_.pop_front();
    const Instant now = environment_.clock->now();
    if (claim.until <= now) continue;
    held.unlock();
    done = answered(claim, [&](const Claim& asked) { driver_->release(asked, now + operationTimeout_); });
    held.lock();
    if (done) continue;
    claims_.push_back(std::move(claim));
    tryAt_ = environment_.clock->now() + retryPause_;
  }
  releasing_ = false;
}

void AbandonedClaims::handOver(std::unique_lock<std::mutex>& held) {
  const std::deque<Abandoned> claims = std::move(claims_);
  claims_.clear();
  held.unlock();
  const Instant deadline = environment_.clock->now() + operationTimeout_;
  for (const Abandoned& claim : claims) {
    if (claim.until <= environment_.clock->now()) continue;
    if (!answered(claim, [&](const Claim& asked) { driver_->handOverRelease(asked, deadline); })) break;
  }
  held.lock();
}

template <class Send>
bool AbandonedClaims::answered(const Abandoned& claim, Send send) noexcept {
  const Instant began = environment_.clock->now();
  try {
    send({claim.key, claim.token, owner_});
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
  } catch (...) {
    return false;  // a driver that breaks its contract
  }
}

}  // namespace lockkeeper::detail
