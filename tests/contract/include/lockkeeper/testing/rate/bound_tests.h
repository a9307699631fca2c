#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "lockkeeper/testing/rate/admissions.h"
#include "lockkeeper/testing/rate/rate_fixture.h"

namespace lockkeeper::testing {

/// Arrivals as they come: bursts, gaps, costs of all sizes; `mean` µs apart.
inline std::vector<Admission> randomAdmissions(RateDriver& driver, const RatePolicy& policy, int arrivals,
                                               std::int64_t mean,
                                               const std::function<void(microseconds)>& pass,
                                               Instant deadline) {
  std::mt19937_64 random(11);
  std::vector<Admission> admissions;
  const std::string key = "arrivals-" + Token::generate(*systemRandom()).hex();
  for (int count = 0; count < arrivals; ++count) {
    const auto cost = std::min<std::int64_t>(
        policy.limit(), 1 + static_cast<std::int64_t>(random() % 8 == 0 ? random() % 5 : 0));
    RateCharge charge{.key = key, .law = &policy.law(), .cost = cost};
    driver.take({&charge, 1}, deadline);
    if (charge.outcome.granted == 1) admissions.push_back({charge.outcome.storeTime, cost});
    if (random() % 16 == 0)
      pass(microseconds{static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(32 * mean + 1))});
  }
  return admissions;
}

TEST_P(RateContract, NoStretchOfTimeAdmitsMoreThanBurstAndRate) {
  for (const RatePolicy& policy : {bucket("2000/s", 10), bucket("7/3ms", 5), bucket("1000000/s", 1)}) {
    const Instant end = deadline() + std::chrono::minutes{10};
    const auto admissions =
        randomAdmissions(*driver, policy, GetParam().arrivals, 150, GetParam().advance, end);
    EXPECT_TRUE(keepsEveryWindow(policy.law(), admissions));
    EXPECT_GT(admissions.size(), 10U);
  }
}

TEST_P(RateContract, NoWindowAdmitsMoreThanItsLimit) {
  for (const RateKind kind : {RateKind::slidingWindow, RateKind::fixedWindow}) {
    bool full = false;
    // A slow store fills long windows only.
    for (const char* rate : {"10/5ms", "10/50ms", "10/500ms"}) {
      const RatePolicy policy = policyOf(kind, rate);
      const Instant end = deadline() + std::chrono::minutes{10};
      const auto admissions =
          randomAdmissions(*driver, policy, GetParam().arrivals, 150, GetParam().advance, end);
      const auto fullest = fullestWindow(policy.law(), admissions);
      EXPECT_LE(fullest, policy.limit()) << toString(kind);
      full = fullest == policy.limit();
      if (full) break;
    }
    EXPECT_TRUE(full) << "not even full: nothing was tested";
  }
}

TEST_P(RateContract, UnderPressureAdmitsAllThatTheRateAllows) {
  const RatePolicy policy = bucket("3000/s", 100);
  constexpr std::int64_t wasteful =
      30'000;  // µs: a longer pause, which the machine may make, fills the bucket
  for (int attempt = 0; attempt < 20; ++attempt) {
    const std::string fresh = uniqueKey();
    const RateOutcome start = take(*driver, fresh, policy, 2, 50);
    std::int64_t admitted = 2 * start.granted, last = start.storeTime, longestPause = 0;
    for (int count = 0; count < 200; ++count) {
      pass(microseconds{300});
      const RateOutcome outcome = take(*driver, fresh, policy, 2, 50);
      admitted += 2 * outcome.granted;
      longestPause = std::max(longestPause, outcome.storeTime - last);
      last = outcome.storeTime;
    }
    const std::int64_t flowed = (last - start.storeTime) * policy.law().parts / policy.law().period;
    EXPECT_LE(admitted, policy.limit() + flowed);
    if (longestPause >= wasteful) continue;
    EXPECT_GE(admitted, policy.limit() + flowed - 2);
    return;
  }
  FAIL() << "the machine paused each time";
}

TEST_P(RateContract, TheNumbersOfTheSourceDocumentHold) {
  // A bucket of 10 that gains 2 a second: 4 requests a second empty it in 10 / (4 - 2) = 5 seconds.
  const RatePolicy policy = bucket("2/s", 10);
  RateOutcome outcome = take(policy);
  const std::int64_t start = outcome.storeTime;
  int admitted = 0;
  while (outcome.granted == 1 && admitted < 100) {
    ++admitted;
    pass(milliseconds{250});
    outcome = take(policy);
  }
  EXPECT_GE(admitted, 19);
  const double refusedAt = static_cast<double>(outcome.storeTime - start) / 1e6;
  EXPECT_EQ(admitted, 10 + static_cast<int>(2 * refusedAt)) << "first refused after " << refusedAt << " s";
  EXPECT_GE(refusedAt, 4.75);
}

TEST_P(RateContract, ARequestEachHalfSecondIsNeverRefused) {
  const RatePolicy policy = bucket("2/s", 10);
  ASSERT_EQ(take(policy, 9).granted, 1);
  for (int count = 0; count < 8; ++count) {
    EXPECT_EQ(take(policy).granted, 1);
    pass(milliseconds{500});
  }
}

}  // namespace lockkeeper::testing
