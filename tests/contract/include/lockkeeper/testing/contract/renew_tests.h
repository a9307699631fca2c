#pragma once

#include <string>
#include <vector>

#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, RenewGivesAFullTtlAgain) {
  const Claimant owner{key};
  ASSERT_TRUE(grant(owner, std::chrono::seconds{20}));
  const Instant before = now();
  Renewal renewal{.claim = owner.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, deadline());
  ASSERT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_GE(renewal.leasedFrom, before);
  EXPECT_LE(renewal.leasedFrom, now());
  EXPECT_GT(renewal.leasedFor, std::chrono::milliseconds{0}) << "as long as the store made the lease";
  const auto held = holder(key);
  ASSERT_TRUE(held);
  if (held->remaining) {
    EXPECT_GT(*held->remaining, std::chrono::seconds{40});
  }
}

TEST_P(DriverContract, RenewedLeasesOutliveTheirFirstTtl) {
  constexpr std::chrono::milliseconds ttl{1000};
  const Claimant owner{key};
  const Instant asked = now();
  ASSERT_TRUE(grant(owner, ttl));
  const RenewOutcome outcome = renew(owner);
  if (now() >= asked + ttl) GTEST_SKIP() << "the machine stood still for the length of the lease";
  ASSERT_EQ(outcome, RenewOutcome::renewed);
  GetParam().advance(ttl + std::chrono::milliseconds{200});
  EXPECT_TRUE(isBusy({key}));
  EXPECT_EQ(release(owner), ReleaseOutcome::released);
}

TEST_P(DriverContract, RenewMayShortenALease) {
  const Claimant owner{key};
  ASSERT_TRUE(grant(owner, longTtl));
  const Instant asked = now();
  ASSERT_EQ(renew(owner, shortTtl()), RenewOutcome::renewed);
  EXPECT_TRUE(isBusyBefore(asked + shortTtl(), {key}));
  EXPECT_TRUE(expires(key, shortTtl()));
}

TEST_P(DriverContract, RenewKeepsTheFence) {
  const Claimant owner{key};
  const auto granted = grant(owner);
  ASSERT_TRUE(granted);
  ASSERT_EQ(renew(owner), RenewOutcome::renewed);
  const auto held = holder(key);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->fence, granted->fence);
}

TEST_P(DriverContract, RenewDoesNotBringBackALeaseThatHasEnded) {
  const Claimant silent{key};
  ASSERT_TRUE(grant(silent, shortTtl()));
  ASSERT_TRUE(expires(key, shortTtl()));
  EXPECT_EQ(renew(silent), renewalOfNothing());
  EXPECT_FALSE(holder(key));
}

TEST_P(DriverContract, RenewDoesNotTouchTheNextHolder) {
  const Claimant former{key};
  const Claimant next{key, "next:2"};
  ASSERT_TRUE(grant(former));
  ASSERT_EQ(release(former), ReleaseOutcome::released);
  ASSERT_TRUE(grant(next, std::chrono::seconds{20}));
  EXPECT_EQ(renew(former), RenewOutcome::notOwner);
  const auto held = holder(key);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->owner, "next:2");
  if (held->remaining) {
    EXPECT_LE(*held->remaining, std::chrono::seconds{21} + GetParam().expirySlack);
  }
}

TEST_P(DriverContract, RenewAnswersForEachLeaseOfABatch) {
  const Claimant mine{key + "/mine"};
  const Claimant ended{key + "/ended"};
  const Claimant taken{key + "/taken"};
  const Claimant alsoMine{key + "/also mine"};
  ASSERT_TRUE(grant(mine));
  ASSERT_TRUE(grant({taken.key}));
  ASSERT_TRUE(grant(alsoMine));
  std::vector<Renewal> batch;
  for (const Claimant* who : {&mine, &ended, &taken, &alsoMine}) {
    batch.push_back({.claim = who->claim(), .ttl = longTtl});
  }
  driver->renew(batch, deadline());
  EXPECT_EQ(batch[0].outcome, RenewOutcome::renewed);
  EXPECT_EQ(batch[1].outcome, renewalOfNothing());
  EXPECT_EQ(batch[2].outcome, RenewOutcome::notOwner);
  EXPECT_EQ(batch[3].outcome, RenewOutcome::renewed);
  EXPECT_FALSE(holder(ended.key));
}

TEST_P(DriverContract, RenewsManyLeasesAtOnce) {
  constexpr std::size_t count = 300;
  std::vector<Claimant> claimants;
  std::vector<Renewal> batch;
  for (std::size_t i = 0; i < count; ++i) claimants.push_back({key + "/" + std::to_string(i)});
  for (const Claimant& who : claimants) {
    ASSERT_TRUE(grant(who));
    batch.push_back({.claim = who.claim(), .ttl = longTtl});
  }
  driver->renew(batch, deadline());
  for (const Renewal& renewal : batch) EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  for (const Claimant& who : claimants) EXPECT_EQ(release(who), ReleaseOutcome::released);
}

TEST_P(DriverContract, RenewsNothingInAnEmptyBatch) { EXPECT_NO_THROW(driver->renew({}, deadline())); }

TEST_P(DriverContract, RenewDoesNotThrowWhenItsDeadlineHasPassed) {
  const Claimant owner{key};
  ASSERT_TRUE(grant(owner));
  Renewal renewal{.claim = owner.claim(), .ttl = longTtl};
  EXPECT_NO_THROW(driver->renew({&renewal, 1}, now() - std::chrono::seconds{1}));
  EXPECT_NE(renewal.outcome, RenewOutcome::notOwner);
  EXPECT_EQ(release(owner), ReleaseOutcome::released);
}

}  // namespace lockkeeper::testing
