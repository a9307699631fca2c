#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "limit/local_limits.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/rate_policy.h"
#include "store/store_health.h"

namespace lockkeeper::detail {

/// The store as a limiter sees it: asked within a time bound, left alone while it is down, and answered for
/// by the policies' outage settings then. What fails one call alone, such as a key of the wrong type, is
/// answered in the same way, and the store is asked for all others. Thread-safe.
class RateStore {
 public:
  using Policies = std::span<const RatePolicy* const>;  // one for each charge
  using Failure = std::optional<StoreFailure>;

  RateStore(std::shared_ptr<RateDriver> driver, const Environment& environment,
            std::chrono::nanoseconds operationTimeout)
      : environment_(environment),
        operationTimeout_(operationTimeout),
        driver_(std::move(driver)),
        localLimits_(environment.clock) {
    for (std::size_t part = 0; part < RateDriver::mostParts; ++part) health_.emplace_back(operationTimeout);
  }

  /// Calls `question(deadline)`, which writes the charges' outcomes. When it cannot, they are written by the
  /// outage settings: then why.
  template <class Question>
  Failure ask(std::span<RateCharge> charges, Policies policies, Question&& question);

  /// Calls `request(deadline)`. Throws what that throws, or StoreUnavailable while the store is down.
  template <class Request>
  void send(std::string_view key, Request&& request);

  /// The key was reset.
  void forget(std::string_view key, RateKind kind) { localLimits_.forget(key, kind); }

  Instant now() const noexcept { return environment_.clock->now(); }

 private:
  void chargeUseBefore(std::span<const RateCharge> charges, Instant deadline);
  void chargeUseAfter(std::span<const RateCharge> charges, Instant deadline);
  StoreHealth& healthOf(std::string_view key) {
    return health_[driver_->partOf(key) % RateDriver::mostParts];
  }
  void tellFailed(const Error& error, std::string_view key, Instant started);
  void failed(const Error& error, std::string_view key, Instant started);
  void answerOutage(std::span<RateCharge> charges, Policies policies);
  void answerLocally(std::span<RateCharge> charges, Policies policies);

  const Environment environment_;
  const std::chrono::nanoseconds operationTimeout_;
  const std::shared_ptr<RateDriver> driver_;
  std::deque<StoreHealth> health_;  // of each part
  LocalLimits localLimits_;
  // Whether one call may be too short to charge the store and to ask it; until nothing is to be charged.
  std::atomic<bool> isSlow_ = false;
};

template <class Question>
RateStore::Failure RateStore::ask(std::span<RateCharge> charges, Policies policies, Question&& question) {
  const Instant started = now();
  const Instant deadline = started + operationTimeout_;
  StoreHealth& health = healthOf(charges.front().key);
  Failure failure;
  if (!health.mayTry(started)) {
    failure = health.lastFailure();
  } else {
    try {
      chargeUseBefore(charges, deadline);
      question(deadline);
      health.succeeded();
    } catch (const ForkedError&) {
      throw;
    } catch (const Error& error) {
      if (now() - started > operationTimeout_ / 2) isSlow_ = true;
      failed(error, charges.front().key, started);
      failure = {error.code(), error.what()};
    }
  }
  if (failure) {
    answerOutage(charges, policies);
  } else {
    chargeUseAfter(charges, deadline);
  }
  return failure;
}

template <class Request>
void RateStore::send(std::string_view key, Request&& request) {
  const Instant started = now();
  StoreHealth& health = healthOf(key);
  if (!health.mayTry(started))
    throw StoreUnavailable("the store failed a moment ago and will be tried again soon");
  try {
    request(started + operationTimeout_);
    health.succeeded();
  } catch (const Error& error) {
    failed(error, key, started);
    throw;
  }
}

}  // namespace lockkeeper::detail
