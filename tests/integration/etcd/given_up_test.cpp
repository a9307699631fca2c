// Claims that their caller has given up, and what the server still does about them.

#include "late_fixture.h"

namespace lockkeeper::test {
namespace {

TEST_F(EtcdLate, WhoLeavesTheQueueLateDoesNotLoseWhatItWasGrantedMeanwhile) {
  const Claimant holds = another();
  const Claimant who = another();
  ASSERT_TRUE(granted(direct->acquire(holds.request())));
  std::stop_source stop;
  Result first = wait(who, stop.get_token());
  ASSERT_TRUE(queued(1));
  keepBack(aRemoval);
  stop.request_stop();
  expectDoubt([&] { return first.get(); });
  ASSERT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  ASSERT_TRUE(granted(proxied->acquire(who.request(soon(), true))));
  sendLate();
  EXPECT_TRUE(direct->holder(key, soon())) << "it holds the lock";
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdLate, AClaimThatWasBusyWhenItWasAskedForAgainTakesNoLock) {
  const Claimant holds = another();
  const Claimant who = another();
  keepBack(aPut);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  ASSERT_TRUE(granted(direct->acquire(holds.request())));
  EXPECT_FALSE(granted(proxied->acquire(who.request(soon(), true))));
  ASSERT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  sendLate();
  EXPECT_FALSE(direct->holder(key, soon()));
}

TEST_F(EtcdLate, AClaimWhoseWaitEndedTakesNoLock) {
  const Claimant holds = another();
  const Claimant who = another();
  keepBack(aPut);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  ASSERT_TRUE(granted(direct->acquire(holds.request())));
  std::stop_source stop;
  Result again = wait(who, stop.get_token());
  ASSERT_TRUE(queued(1));
  stop.request_stop();
  EXPECT_FALSE(granted(again.get()));
  ASSERT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  sendLate();
  EXPECT_FALSE(direct->holder(key, soon()));
}

TEST_F(EtcdLate, ALeaseInDoubtThatCouldNotBeEndedIsEndedByTheNextRelease) {
  const Claimant who = another();
  keepBack(aPut);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  const std::string late = proxy.held();
  keepBack(aRevocation);
  {
    const auto ending = endHeldConnection();
    EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  }
  ASSERT_EQ(proxy.fired(), 1U);
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  sendLate(late);
  EXPECT_FALSE(direct->holder(key, soon()));
}

}  // namespace
}  // namespace lockkeeper::test
