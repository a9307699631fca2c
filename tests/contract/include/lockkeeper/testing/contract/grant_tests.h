#pragma once

#include <string>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, GrantsAFreeKey) { EXPECT_TRUE(grant({key})); }

TEST_P(DriverContract, RefusesAHeldKeyToEveryOtherToken) {
  ASSERT_TRUE(grant({key}));
  EXPECT_TRUE(isBusy({key})) << "same client, same owner, another token";
  EXPECT_TRUE(std::holds_alternative<Busy>(ask(*otherClient, {key})));
}

TEST_P(DriverContract, TellsABusyCallerNoLongerWaitThanTheLease) {
  ASSERT_TRUE(grant({key}));
  const AcquireResult result = ask({key});
  const auto* busy = std::get_if<Busy>(&result);
  ASSERT_NE(busy, nullptr);
  if (busy->retryAfter) {
    EXPECT_GE(*busy->retryAfter, std::chrono::milliseconds{0});
    EXPECT_LE(*busy->retryAfter, longTtl + drift(longTtl) + GetParam().expirySlack);
  }
}

TEST_P(DriverContract, LocksOfDifferentKeysAreIndependent) {
  const Claimant first{key + "/a"};
  const Claimant second{key + "/b"};
  ASSERT_TRUE(grant(first));
  ASSERT_TRUE(grant(second));
  EXPECT_EQ(release(first), ReleaseOutcome::released);
  EXPECT_TRUE(isBusy({key + "/b"}));
}

TEST_P(DriverContract, CountsTheLeaseFromBeforeTheRequestWasSent) {
  const Instant before = now();
  const auto granted = grant({key});
  ASSERT_TRUE(granted);
  EXPECT_GE(granted->leasedFrom, before);
  EXPECT_LE(granted->leasedFrom, now());
  EXPECT_GT(granted->leasedFor, std::chrono::milliseconds{0}) << "as long as the store made the lease";
}

TEST_P(DriverContract, NeverFreesAKeyBeforeItsLeaseHasEnded) {
  struct Running {
    std::string key;
    Instant end;
  };
  std::vector<Running> running;
  const auto step = shortTtl() / 20;
  for (int i = 0; i < 20 || !running.empty(); ++i) {
    // At different moments: a store that counts whole seconds ends only some leases early.
    if (i < 20 && i % 4 == 0) {
      const std::string which = key + "/" + std::to_string(i);
      const auto granted = grant({which}, shortTtl());
      ASSERT_TRUE(granted);
      running.push_back({which, granted->leasedFrom + granted->leasedFor - drift(granted->leasedFor)});
    }
    std::erase_if(running, [&](const Running& each) {
      if (now() >= each.end) return true;
      const bool isHeld = holder(each.key).has_value();
      EXPECT_TRUE(isHeld || now() >= each.end) << "the key is free before its lease has ended";
      return !isHeld;
    });
    GetParam().advance(step);
  }
}

TEST_P(DriverContract, FreesTheKeyOfASilentHolderWhenItsLeaseEnds) {
  const Claimant silent{key};
  ASSERT_TRUE(grant(silent, shortTtl()));
  ASSERT_TRUE(expires(key, shortTtl()));
  EXPECT_TRUE(grant({key}));
  EXPECT_EQ(release(silent), ReleaseOutcome::notOwner)
      << "the next holder's lock is not the old holder's to release";
  EXPECT_TRUE(isBusy({key}));
}

TEST_P(DriverContract, ReleaseFreesTheKey) {
  const Claimant first{key};
  ASSERT_TRUE(grant(first));
  EXPECT_EQ(release(first), ReleaseOutcome::released);
  EXPECT_FALSE(holder(key));
  EXPECT_TRUE(grant({key}));
}

TEST_P(DriverContract, AClaimNeedsNoOwnersName) {
  const Claimant owner{key};
  const Claim nameless{.key = owner.key, .token = owner.token, .owner = {}};
  ASSERT_TRUE(std::holds_alternative<Granted>(driver->acquire({nameless, longTtl, deadline()})));
  EXPECT_EQ(driver->release(nameless, deadline()), ReleaseOutcome::released);
}

TEST_P(DriverContract, OnlyTheOwnerReleases) {
  const Claimant owner{key};
  ASSERT_TRUE(grant(owner));
  EXPECT_EQ(release({key}), ReleaseOutcome::notOwner);
  EXPECT_EQ(release({key + "/other", "", owner.token}), releaseOfNothing());
  EXPECT_TRUE(isBusy({key}));
  EXPECT_EQ(release(owner), ReleaseOutcome::released);
}

TEST_P(DriverContract, ASecondReleaseIsNotTheOwners) {
  const Claimant owner{key};
  ASSERT_TRUE(grant(owner));
  EXPECT_EQ(release(owner), ReleaseOutcome::released);
  EXPECT_EQ(release(owner), releaseOfNothing());
}

TEST_P(DriverContract, ResendingAClaimGivesTheSameGrantForAFullTtl) {
  const Claimant owner{key};
  const auto first = grant(owner, std::chrono::seconds{20});
  ASSERT_TRUE(first);
  const Instant before = now();
  const auto again = grant(owner, longTtl, true);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->fence, first->fence);
  EXPECT_GE(again->leasedFrom, before);
  const auto held = holder(key);
  ASSERT_TRUE(held);
  if (held->remaining) {
    EXPECT_GT(*held->remaining, std::chrono::seconds{40});
  }
  EXPECT_EQ(release(owner), ReleaseOutcome::released);
  EXPECT_FALSE(holder(key)) << "two sends are one claim: one release frees it";
}

TEST_P(DriverContract, ResendingAClaimThatNeverArrivedIsAClaim) {
  const Claimant owner{key};
  ASSERT_TRUE(grant(owner, longTtl, true));
  EXPECT_TRUE(isBusy({key}));
  EXPECT_EQ(release(owner), ReleaseOutcome::released);
}

TEST_P(DriverContract, ResendingAClaimTakesNothingFromTheNextHolder) {
  const Claimant former{key};
  const Claimant next{key};
  ASSERT_TRUE(grant(former));
  ASSERT_EQ(release(former), ReleaseOutcome::released);
  const auto nextGrant = grant(next);
  ASSERT_TRUE(nextGrant);
  EXPECT_FALSE(grant(former, longTtl, true));
  EXPECT_EQ(release(former), ReleaseOutcome::notOwner);
  EXPECT_EQ(release(next), ReleaseOutcome::released);
}

TEST_P(DriverContract, ADeadlineInThePastEndsTheCallAndLeavesNothingThatCannotBeReleased) {
  const Claimant late{key};
  ASSERT_FALSE(holder(key)) << "and connected by now";
  const Instant past = now() - std::chrono::seconds{1};
  try {
    (void)driver->acquire({.claim = late.claim(), .ttl = longTtl, .deadline = past});
  } catch (const Error&) {  // Which one is the driver's choice: nothing was promised to be sent.
  }
  (void)release(late);
  EXPECT_TRUE(grant({key}));
}

}  // namespace lockkeeper::testing
