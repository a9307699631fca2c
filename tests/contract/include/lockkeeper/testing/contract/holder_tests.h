#pragma once

#include <string>

#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, ShowsNoHolderOfAFreeKey) { EXPECT_FALSE(holder(key)); }

TEST_P(DriverContract, ShowsWhoHoldsAKeyAndForHowLong) {
  const auto granted = grant({key, "web-1.shop:4711"});
  ASSERT_TRUE(granted);
  const auto held = otherClient->holder(key, deadline());
  ASSERT_TRUE(held);
  EXPECT_EQ(held->owner, "web-1.shop:4711");
  EXPECT_EQ(held->fence, granted->fence);
  if (held->remaining) {
    EXPECT_GT(*held->remaining, std::chrono::milliseconds{0});
    EXPECT_LE(*held->remaining, longTtl + drift(longTtl) + GetParam().expirySlack);
  }
}

TEST_P(DriverContract, NeverShowsTheToken) {
  const Claimant secretive{key};
  ASSERT_TRUE(grant(secretive));
  const auto held = holder(key);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->owner.find(secretive.token.hex()), std::string::npos)
      << "whoever knows it can release the lock";
}

TEST_P(DriverContract, ShowsLabelsAsTheyAre) {
  for (const std::string& label : {std::string(), std::string("a\"b'c\\d%e:f{g}"), std::string(64, 'x')}) {
    const Claimant who{key, label};
    ASSERT_TRUE(grant(who));
    const auto held = holder(key);
    ASSERT_TRUE(held);
    EXPECT_EQ(held->owner, label);
    EXPECT_EQ(release(who), ReleaseOutcome::released);
  }
}

TEST_P(DriverContract, LookingAtAKeyChangesNothing) {
  const Claimant owner{key};
  ASSERT_TRUE(grant(owner, shortTtl()));
  for (int i = 0; i < 20; ++i) (void)otherClient->holder(key, deadline());
  ASSERT_TRUE(expires(key, shortTtl())) << "looking must not extend the lease";
}

}  // namespace lockkeeper::testing
