#pragma once

#include <array>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/error.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

// The order in which stores that count permits, and queue claims, serve shares.

namespace lockkeeper::testing {

TEST_P(DriverContract, AReleaseServesAllReadersInFront) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << noPermits << ", or the factory cannot tell how many wait";
  const Instant began = now();
  const Claimant writer{key};
  const std::array readers{sharer(1, 9), sharer(1, 9), sharer(1, 9)};
  const Claimant nextWriter{key};
  const Claimant lastReader = sharer(1, 9);
  ASSERT_TRUE(grant(writer));
  std::vector<Waiting> together;
  for (const Claimant& each : readers) {
    together.push_back(waitFor(*otherClient, each, farAway()));
    ASSERT_TRUE(queued(together.size()));
  }
  Waiting second = waitFor(nextWriter, farAway());
  ASSERT_TRUE(queued(4));
  Waiting last = waitFor(lastReader, farAway());
  ASSERT_TRUE(queued(5));
  ASSERT_EQ(release(writer), ReleaseOutcome::released);
  for (Waiting& each : together) EXPECT_TRUE(std::holds_alternative<Granted>(each.get()));
  EXPECT_TRUE(queued(2)) << "the reader behind the second writer waits";
  bool keepsOut = true;
  for (const Claimant& each : readers) {
    keepsOut = keepsOutANewcomer(sharer(1, 9)) && keepsOut;
    EXPECT_EQ(release(each), ReleaseOutcome::released);
  }
  EXPECT_TRUE(keepsOut || mayHaveLostAPlace(began));
  EXPECT_TRUE(std::holds_alternative<Granted>(second.get()));
  EXPECT_TRUE(queued(1));
  EXPECT_EQ(release(nextWriter), ReleaseOutcome::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(last.get()));
  EXPECT_EQ(release(lastReader), ReleaseOutcome::released);
  EXPECT_FALSE(holder(key));
}

TEST_P(DriverContract, AClaimOfManyPermitsIsNotPassedOver) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << noPermits << ", or the factory cannot tell how many wait";
  const Instant began = now();
  const Claimant holds[] = {sharer(1, 3), sharer(1, 3)};
  for (const Claimant& each : holds) ASSERT_TRUE(grant(each));
  const Claimant many = sharer(3, 3);
  Waiting result = waitFor(many, farAway());
  ASSERT_TRUE(queued(1));
  bool keepsOut = keepsOutANewcomer(sharer(1, 3));
  EXPECT_EQ(release(holds[0]), ReleaseOutcome::released);
  keepsOut = keepsOutANewcomer(sharer(1, 3)) && keepsOut;
  EXPECT_TRUE(keepsOut || mayHaveLostAPlace(began));
  EXPECT_EQ(release(holds[1]), ReleaseOutcome::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(result.get()));
  EXPECT_EQ(release(many), ReleaseOutcome::released);
}

TEST_P(DriverContract, WhoGivesUpLetsThoseBehindGo) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << noPermits << ", or the factory cannot tell how many wait";
  const Instant began = now();
  const Claimant reader = sharer(1, 3);
  const Claimant writer{key};
  const std::array behind{sharer(1, 3), sharer(1, 3)};
  ASSERT_TRUE(grant(reader));
  Waiting givesUp = waitFor(writer, farAway());
  ASSERT_TRUE(queued(1));
  std::vector<Waiting> results;
  bool wait = true;
  while (wait && results.size() < behind.size()) {
    results.push_back(waitFor(*otherClient, behind[results.size()], farAway()));
    wait = isSeenWaiting(results.back(), 1 + results.size());
  }
  EXPECT_TRUE(wait || mayHaveLostAPlace(began));
  givesUp.stop();
  EXPECT_TRUE(std::holds_alternative<Busy>(givesUp.get()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_TRUE(std::holds_alternative<Granted>(results[i].get()));
    EXPECT_EQ(release(behind[i]), ReleaseOutcome::released);
  }
  EXPECT_EQ(release(reader), ReleaseOutcome::released);
}

TEST_P(DriverContract, AWaitingShareGetsThePermitsOfALeaseThatHasEnded) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << noPermits << ", or the factory cannot tell how many wait";
  const Claimant holds = sharer(1, 2);
  const Claimant waits = sharer(1, 2);
  ASSERT_TRUE(grant(sharer(1, 2)));
  ASSERT_TRUE(grant(holds));
  Waiting result = waitFor(waits, farAway());
  ASSERT_TRUE(queued(1));
  const Instant renewed = now();
  ASSERT_EQ(renew(holds, shortTtl()), RenewOutcome::renewed);
  GetParam().advance(shortTtl() + std::chrono::milliseconds{1});
  EXPECT_TRUE(std::holds_alternative<Granted>(result.get()));
  EXPECT_GE(now(), renewed + shortTtl());
  EXPECT_EQ(shareHolders().size(), 2U);
  EXPECT_EQ(release(waits), ReleaseOutcome::released);
}

TEST_P(DriverContract, AWaitForAnotherLimitEndsWhenTheKeyHasOne) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << noPermits << ", or the factory cannot tell how many wait";
  const Claimant mutex{key};
  const Claimant first = sharer(1, 2);
  const Claimant other = sharer(1, 3);
  ASSERT_TRUE(grant(mutex));
  Waiting result = waitFor(first, farAway());
  ASSERT_TRUE(queued(1));
  Waiting disagrees = waitFor(*otherClient, other, farAway());
  ASSERT_TRUE(queued(2));
  ASSERT_EQ(release(mutex), ReleaseOutcome::released);
  ASSERT_TRUE(std::holds_alternative<Granted>(result.get()));
  EXPECT_THROW((void)disagrees.get(), ConfigError);
  EXPECT_TRUE(queued(0));
  EXPECT_EQ(release(first), ReleaseOutcome::released);
}

TEST_P(DriverContract, AllWhoWaitForAFormerLimitAreTold) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << noPermits << ", or the factory cannot tell how many wait";
  const Claimant holds = sharer(2, 2);
  const Claimant next = sharer(1, 3);
  ASSERT_TRUE(grant(holds));
  std::vector<Claimant> all;
  for (int number = 0; number < 20; ++number) all.push_back(sharer(1, 2));
  std::vector<Waiting> results;
  for (const Claimant& each : all) {
    results.push_back(waitFor(*otherClient, each, farAway()));
    ASSERT_TRUE(queued(results.size()));
  }
  ASSERT_TRUE(capability<Permits>(*driver)->resize(key, 3, deadline()));
  for (Waiting& each : results) EXPECT_THROW((void)each.get(), ConfigError);
  EXPECT_TRUE(queued(0));
  EXPECT_TRUE(grant(next)) << "there is one more";
}

TEST_P(DriverContract, AClaimAheadIsNotHeldUpByThoseWhoWait) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << noPermits << ", or the factory cannot tell how many wait";
  const Instant began = now();
  const Claimant holds = sharer(2, 3);
  const Claimant writer{key};
  Claimant rest = sharer(1, 3);
  rest.ahead = true;
  const auto first = grant(holds);
  ASSERT_TRUE(first);
  Waiting writing = waitFor(*otherClient, writer, farAway());
  ASSERT_TRUE(queued(1));
  const bool keepsOut = keepsOutANewcomer(sharer(1, 3));
  EXPECT_TRUE(keepsOut || mayHaveLostAPlace(began));
  const auto whole = grant(rest);
  ASSERT_TRUE(whole);
  if (GetParam().fence != FencePromise::none) {
    EXPECT_GT(whole->fence, first->fence) << "it takes the last permit";
    EXPECT_EQ(grant(rest, longTtl, true)->fence, whole->fence);
  }
  EXPECT_EQ(release(rest), ReleaseOutcome::released);
  EXPECT_EQ(release(holds), ReleaseOutcome::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(writing.get()));
  EXPECT_EQ(release(writer), ReleaseOutcome::released);
}

TEST_P(DriverContract, AClaimAheadWaitsInFrontOfAllOthers) {
  if (!GetParam().permits || !GetParam().queued)
    GTEST_SKIP() << noPermits << ", or the factory cannot tell how many wait";
  const Claimant holds = sharer(2, 3);
  const Claimant reader = sharer(1, 3);
  const Claimant writer{key};
  Claimant rest = sharer(1, 3);
  rest.ahead = true;
  const auto first = grant(holds);
  ASSERT_TRUE(first && grant(reader));
  Waiting writing = waitFor(*otherClient, writer, farAway());
  ASSERT_TRUE(queued(1));
  Waiting upgrading = waitFor(rest, farAway());
  ASSERT_TRUE(queued(2));
  EXPECT_EQ(release(reader), ReleaseOutcome::released);
  const AcquireResult whole = upgrading.get();
  ASSERT_TRUE(std::holds_alternative<Granted>(whole));
  EXPECT_GE(std::get<Granted>(whole).fence, first->fence);
  EXPECT_TRUE(queued(1));
  EXPECT_EQ(release(holds), ReleaseOutcome::released);
  EXPECT_EQ(release(rest), ReleaseOutcome::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(writing.get()));
}

}  // namespace lockkeeper::testing
