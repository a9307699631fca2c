#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "lockkeeper/base/random.h"
#include "lockkeeper/base/token.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/testing/rate_factory.h"

#include <gtest/gtest.h>

namespace lockkeeper::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;

inline RatePolicy policyOf(RateKind kind, std::string_view rate, std::int64_t burst = 0) {
  return RatePolicy("p", {.kind = kind, .rate = Rate::parse("rate", rate), .burst = burst});
}

inline RatePolicy bucket(std::string_view rate, std::int64_t burst = 0) {
  return policyOf(RateKind::tokenBucket, rate, burst);
}

/// The moment, on the store's clock, at which nothing is used any more.
inline std::int64_t resetTime(const RateOutcome& outcome) {
  return outcome.storeTime + outcome.resetAfter.count();
}

/// The suite. Each test has a key of its own, and two clients of the store.
class RateContract : public ::testing::TestWithParam<RateFactory> {
 protected:
  static std::string uniqueKey() { return "rate-" + Token::generate(*systemRandom()).hex(); }

  static std::shared_ptr<RateDriver> openClient() { return GetParam().open(GetParam().clock); }
  static Instant deadline() { return GetParam().clock->now() + std::chrono::seconds{10}; }
  static void pass(microseconds length) { GetParam().advance(length); }

  RateOutcome take(const RatePolicy& policy, std::int64_t cost = 1, std::int64_t times = 1) {
    return take(*driver, key, policy, cost, times);
  }
  static RateOutcome take(RateDriver& at, std::string_view which, const RatePolicy& policy,
                          std::int64_t cost = 1, std::int64_t times = 1) {
    RateCharge charge{.key = which, .law = &policy.law(), .cost = cost, .times = times};
    at.take({&charge, 1}, deadline());
    return charge.outcome;
  }
  RateOutcome reserve(const RatePolicy& policy, microseconds longestWait = microseconds::max()) {
    RateCharge charge{.key = key, .law = &policy.law(), .longestWait = longestWait};
    driver->take({&charge, 1}, deadline());
    return charge.outcome;
  }
  RateOutcome peek(const RatePolicy& policy, std::int64_t cost = 1) {
    RateCharge charge{.key = key, .law = &policy.law(), .cost = cost};
    driver->peek({&charge, 1}, deadline());
    return charge.outcome;
  }
  bool refund(const RatePolicy& policy, std::int64_t cost = 1) {
    return driver->refund({.key = key, .law = &policy.law(), .cost = cost}, deadline());
  }
  bool giveBack(const RatePolicy& policy, const RateOutcome& reserved) {
    return driver->refund({.key = key, .law = &policy.law(), .cost = 1, .slot = reserved.slot}, deadline());
  }

  const std::string key = uniqueKey();
  const std::shared_ptr<RateDriver> driver = openClient();
  const std::shared_ptr<RateDriver> otherClient = openClient();
};

}  // namespace lockkeeper::testing
