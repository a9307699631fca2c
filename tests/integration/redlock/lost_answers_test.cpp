#include <algorithm>

#include "lockkeeper/driver/inspection.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

/// All nodes do what they are asked, and end the connection before they answer.
class LostAnswers : public RedlockTest {
 protected:
  template <class Call>
  void loseAnswersTo(Call call) {
    // Each has answered all that it was asked before.
    ASSERT_TRUE(waitUntil([&] {
      const auto views = capability<Quorate>(*driver)->views(who.key, soon());
      return std::ranges::all_of(views, [](const Quorate::View& view) { return view.fault.empty(); });
    }));
    for (const auto& proxy : proxies) proxy->cutReplies(0, Ending::rst);
    call();
    // A quorum of lost answers is not waited longer for.
    for (const auto& proxy : proxies) EXPECT_TRUE(waitUntil([&] { return proxy->fired() == 1; }));
  }
  void hold(const Claimant& who) {
    ASSERT_TRUE(allAgree(*driver));
    ASSERT_TRUE(granted(driver->acquire(who.request())));
    ASSERT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; }));
  }
  bool isFreeInTheEnd(const Claimant& who) {
    return waitUntil([&] {
      (void)driver->holder("any call carries what is pending", soon());
      return votes(who.key) == 0;
    });
  }

  const std::shared_ptr<LockDriver> driver = open();
  const Claimant who{};
};

TEST_F(LostAnswers, ToAClaimLeaveItInDoubtAndItIsWithdrawn) {
  loseAnswersTo([&] { EXPECT_THROW((void)driver->acquire(who.request()), WithdrawalUnknown); });
  EXPECT_TRUE(isFreeInTheEnd(who));
}

TEST_F(LostAnswers, ToARenewalLeaveItInDoubt) {
  hold(who);
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  loseAnswersTo([&] { driver->renew({&renewal, 1}, soon()); });
  EXPECT_EQ(renewal.outcome, RenewOutcome::unknown);
}

TEST_F(LostAnswers, ToAReleaseLeaveItInDoubt) {
  hold(who);
  loseAnswersTo([&] { EXPECT_THROW((void)driver->release(who.claim(), soon()), OutcomeUnknown); });
  EXPECT_TRUE(isFreeInTheEnd(who));
}

TEST_F(LostAnswers, ToWhoBreaksALockLeaveThatInDoubt) {
  hold(who);
  auto& breakable = *capability<Breakable>(*driver);
  loseAnswersTo([&] { EXPECT_THROW((void)breakable.breakLock(who.key, soon()), OutcomeUnknown); });
  EXPECT_TRUE(isFreeInTheEnd(who));
}

}  // namespace
}  // namespace lockkeeper::test
