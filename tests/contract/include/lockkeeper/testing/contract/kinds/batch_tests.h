#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

/// Claimants of `key`/100, `key`/101, and so on: in the order of their bytes.
inline std::vector<Claimant> claimantsOf(const std::string& key, int count) {
  std::vector<Claimant> made;
  for (int index = 0; index < count; ++index) made.push_back({key + "/" + std::to_string(100 + index)});
  return made;
}

inline std::vector<Claim> claimsOf(const std::vector<Claimant>& claimants) {
  std::vector<Claim> claims;
  for (const Claimant& each : claimants) claims.push_back(each.claim());
  return claims;
}

inline std::vector<AcquireRequest> requestsOf(const std::vector<Claimant>& claimants,
                                              std::chrono::milliseconds ttl, Instant deadline,
                                              bool resend = false) {
  std::vector<AcquireRequest> requests;
  for (const Claimant& each : claimants) {
    requests.push_back({.claim = each.claim(), .ttl = ttl, .deadline = deadline, .resend = resend});
  }
  return requests;
}

TEST_P(DriverContract, SeveralFreeKeysAreGrantedInOneCallEachWithItsLeaseAndFence) {
  auto* const batchable = capability<Batchable>(*driver);
  if (batchable == nullptr) GTEST_SKIP() << notBatchable;
  const auto mine = claimantsOf(key, 20);
  const Instant before = now();
  const auto results = batchable->acquireInOrder(requestsOf(mine, longTtl, deadline()));
  ASSERT_EQ(results.size(), mine.size());
  for (std::size_t index = 0; index < mine.size(); ++index) {
    const auto* granted = std::get_if<Granted>(&results[index]);
    ASSERT_NE(granted, nullptr) << index;
    EXPECT_GE(granted->leasedFrom, before);
    EXPECT_EQ(granted->fence.has_value(), GetParam().fence != FencePromise::none);
    EXPECT_FALSE(std::holds_alternative<Granted>(ask(*otherClient, {mine[index].key})));
    EXPECT_EQ(release(mine[index]), ReleaseOutcome::released);
  }
}

TEST_P(DriverContract, OfSeveralKeysThoseBeforeTheFirstBusyOneAreGrantedAndNoneAfterIt) {
  auto* const batchable = capability<Batchable>(*driver);
  if (batchable == nullptr) GTEST_SKIP() << notBatchable;
  const auto mine = claimantsOf(key, 4);
  const Claimant holder{mine[2].key};
  ASSERT_TRUE(std::holds_alternative<Granted>(ask(*otherClient, holder)));
  const auto results = batchable->acquireInOrder(requestsOf(mine, longTtl, deadline()));
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<Granted>(results[0]));
  EXPECT_TRUE(std::holds_alternative<Granted>(results[1]));
  EXPECT_TRUE(std::holds_alternative<Busy>(results[2]));
  EXPECT_TRUE(std::holds_alternative<Granted>(ask(*otherClient, {mine[3].key})));
  EXPECT_EQ(otherClient->release(holder.claim(), deadline()), ReleaseOutcome::released)
      << "it was left alone";
}

TEST_P(DriverContract, SeveralClaimsThatAreSentAgainAreTheSameGrants) {
  auto* const batchable = capability<Batchable>(*driver);
  if (batchable == nullptr) GTEST_SKIP() << notBatchable;
  const auto mine = claimantsOf(key, 3);
  const auto first = batchable->acquireInOrder(requestsOf(mine, longTtl, deadline()));
  ASSERT_EQ(release(mine[1]), ReleaseOutcome::released);  // as if that had not been granted
  const auto again = batchable->acquireInOrder(requestsOf(mine, longTtl, deadline(), true));
  ASSERT_EQ(again.size(), mine.size());
  for (const std::size_t index : {0U, 2U}) {
    EXPECT_EQ(std::get<Granted>(again[index]).fence, std::get<Granted>(first[index]).fence);
  }
  const auto fence = std::get<Granted>(again[1]).fence;
  if (fence) {
    EXPECT_GT(*fence, *std::get<Granted>(first[1]).fence);
  }
}

TEST_P(DriverContract, SeveralKeysThatAreHeldAreFreedInOneCall) {
  auto* const releasing = capability<BatchReleasing>(*driver);
  if (releasing == nullptr) GTEST_SKIP() << notBatchReleasing;
  const auto mine = claimantsOf(key, 20);
  for (const Claimant& each : mine) ASSERT_TRUE(std::holds_alternative<Granted>(ask(each)));
  EXPECT_EQ(releasing->releaseAll(claimsOf(mine), deadline()),
            std::vector(mine.size(), ReleaseOutcome::released));
  for (const Claimant& each : mine) EXPECT_FALSE(holder(each.key));
  EXPECT_EQ(releasing->releaseAll(claimsOf(mine), deadline()), std::vector(mine.size(), releaseOfNothing()));
}

TEST_P(DriverContract, OfSeveralReleasesEachFreesWhatItsClaimHoldsAndNothingElse) {
  auto* const releasing = capability<BatchReleasing>(*driver);
  if (releasing == nullptr) GTEST_SKIP() << notBatchReleasing;
  const auto mine = claimantsOf(key, 4);
  for (const std::size_t index : {3U, 0U}) {
    ASSERT_TRUE(std::holds_alternative<Granted>(ask(mine[index])));
  }
  const Claimant another{mine[2].key};
  ASSERT_TRUE(std::holds_alternative<Granted>(ask(*otherClient, another)));
  const auto outcomes = releasing->releaseAll(claimsOf(mine), deadline());
  EXPECT_EQ(outcomes, (std::vector{ReleaseOutcome::released, releaseOfNothing(), ReleaseOutcome::notOwner,
                                   ReleaseOutcome::released}));
  EXPECT_FALSE(holder(mine[0].key));
  EXPECT_FALSE(holder(mine[1].key)) << "a release makes no lock";
  EXPECT_EQ(otherClient->release(another.claim(), deadline()), ReleaseOutcome::released);
}

}  // namespace lockkeeper::testing
