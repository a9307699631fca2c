#pragma once

#include <algorithm>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, KeepsThePromiseOfFencesThatItGives) {
  EXPECT_EQ(driver->promises().fence, GetParam().fence);
  EXPECT_FALSE(driver->promises().durability.empty());
  const auto granted = grant({key});
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->fence.has_value(), GetParam().fence != FencePromise::none);
}

TEST_P(DriverContract, FencesIncreaseFromGrantToGrantHoweverTheLastOneEnded) {
  if (GetParam().fence == FencePromise::none) GTEST_SKIP() << "the driver promises no fences";
  Fence highest = 0;
  const auto grantsAHigherOne = [&](const Claimant& who, std::chrono::milliseconds ttl) {
    const auto granted = grant(who, ttl);
    ASSERT_TRUE(granted);
    ASSERT_TRUE(granted->fence);
    EXPECT_GT(*granted->fence, highest);
    highest = std::max(highest, *granted->fence);
  };
  const Claimant releases{key};
  grantsAHigherOne(releases, longTtl);
  EXPECT_TRUE(isBusy({key}));
  EXPECT_EQ(release(releases), ReleaseOutcome::released);
  grantsAHigherOne(releases, longTtl);
  EXPECT_EQ(release(releases), ReleaseOutcome::released);
  grantsAHigherOne({key}, shortTtl());
  ASSERT_TRUE(expires(key, shortTtl()));
  const Claimant broken{key};
  grantsAHigherOne(broken, longTtl);
  if (GetParam().breakable) {
    EXPECT_TRUE(breakLock(key));
  } else {
    EXPECT_EQ(release(broken), ReleaseOutcome::released);
  }
  grantsAHigherOne({key}, longTtl);
}

TEST_P(DriverContract, FencesIncreaseAcrossClients) {
  if (GetParam().fence == FencePromise::none) GTEST_SKIP() << "the driver promises no fences";
  Fence highest = 0;
  for (int round = 0; round < 6; ++round) {
    LockDriver& client = round % 2 == 0 ? *driver : *otherClient;
    const Claimant who{key};
    const AcquireResult result = ask(client, who);
    ASSERT_TRUE(std::holds_alternative<Granted>(result));
    const auto fence = std::get<Granted>(result).fence;
    ASSERT_TRUE(fence);
    EXPECT_GT(*fence, highest);
    highest = *fence;
    ASSERT_EQ(client.release(who.claim(), deadline()), ReleaseOutcome::released);
  }
}

TEST_P(DriverContract, EveryTurnOfAGrantHasAFenceThatNoOtherGrantHas) {
  constexpr std::uint32_t asked = 8;
  Fence highest = 0;
  for (int round = 0; round < 6; ++round) {
    LockDriver& client = round % 2 == 0 ? *driver : *otherClient;
    const Claimant who{key};
    const AcquireRequest request{
        .claim = who.claim(), .ttl = longTtl, .deadline = deadline(), .localHolders = asked};
    const AcquireResult result = client.acquire(request);
    ASSERT_TRUE(std::holds_alternative<Granted>(result));
    const Granted& granted = std::get<Granted>(result);
    EXPECT_GE(granted.localHolders, 1U);
    EXPECT_LE(granted.localHolders, asked);
    const auto last = granted.fence ? *granted.fence + granted.localHolders - 1 : 0;
    if (granted.fence) {
      EXPECT_GT(*granted.fence, highest);
    }
    highest = last;
    // Whoever sends the claim again cannot know how many of the turns are over.
    AcquireRequest again = request;
    again.resend = true;
    const AcquireResult resent = client.acquire(again);
    ASSERT_TRUE(std::holds_alternative<Granted>(resent));
    EXPECT_EQ(std::get<Granted>(resent).localHolders, 1U);
    if (granted.fence) {
      EXPECT_LE(*std::get<Granted>(resent).fence, last);
    }
    ASSERT_EQ(client.release(who.claim(), deadline()), ReleaseOutcome::released);
  }
}

// A request that is late may be carried out before the same claim is asked for again, with other turns.
TEST_P(DriverContract, AClaimThatIsFoundToHoldItsKeyHasOneTurnAndTheFenceOfItsGrant) {
  for (const bool resend : {false, true}) {
    SCOPED_TRACE(resend ? "sent again" : "asked for as if for the first time");
    const Claimant who{uniqueKey()};
    AcquireRequest request{.claim = who.claim(), .ttl = longTtl, .deadline = deadline()};
    const AcquireResult first = driver->acquire(request);
    ASSERT_TRUE(std::holds_alternative<Granted>(first));
    request.localHolders = 64;
    request.resend = resend;
    const AcquireResult found = driver->acquire(request);
    // A driver need not look for a claim of which it is not told that it was sent before.
    ASSERT_TRUE(std::holds_alternative<Granted>(found) || !resend);
    if (const auto* granted = std::get_if<Granted>(&found)) {
      EXPECT_EQ(granted->localHolders, 1U);
      EXPECT_EQ(granted->fence, std::get<Granted>(first).fence);
    }
    ASSERT_EQ(release(who), ReleaseOutcome::released);
  }
}

}  // namespace lockkeeper::testing
