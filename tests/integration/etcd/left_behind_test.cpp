// Claims that are left in a queue whose other claims are kept alive.

#include "late_fixture.h"

namespace lockkeeper::test {
namespace {

/// One holds the lock, and one of the same process as the others waits until the end.
class EtcdLeftBehind : public EtcdLate {
 protected:
  EtcdLeftBehind() {
    EXPECT_TRUE(granted(direct->acquire(holds.request())));
    stays_ = wait(stays);
    EXPECT_TRUE(queued(1));
    place_ = cluster().lastClaim(key).created;
  }

  /// What is left behind goes, though the lease on which it waits was kept alive for others, who keep their
  /// places.
  void expectGone() {
    EXPECT_TRUE(queued(1, 30s)) << "it is kept alive";
    EXPECT_EQ(cluster().lastClaim(key).created, place_);
    EXPECT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
    const AcquireResult result = stays_.get();
    ASSERT_TRUE(granted(result));
    EXPECT_EQ(std::get<Granted>(result).fence, static_cast<Fence>(place_));
    EXPECT_EQ(proxied->release(stays.claim(), soon()), ReleaseOutcome::released);
  }

  const Claimant holds = another();
  const Claimant stays = another();

 private:
  Result stays_;
  std::int64_t place_ = 0;
};

TEST_F(EtcdLeftBehind, AWaiterThatCannotLeaveTheQueueIsGoneSoon) {
  std::stop_source stop;
  Result goes = wait(another(), stop.get_token());
  ASSERT_TRUE(queued(2));
  keepBack(aRemoval);
  stop.request_stop();
  expectDoubt([&] { return goes.get(); });
  EXPECT_EQ(proxy.fired(), 1U);
  expectGone();
}

TEST_F(EtcdLeftBehind, AClaimThatEntersTheQueueLateIsGoneSoon) {
  const Claimant goes = another();
  keepBack(aPut);
  expectDoubt([&] { return wait(goes).get(); });
  EXPECT_EQ(proxied->release(goes.claim(), soon()), ReleaseOutcome::notOwner);
  sendLate();
  expectGone();
}

TEST_F(EtcdLeftBehind, WhoAsksAgainKeepsItsPlaceAndOthersNeedNotMove) {
  const Claimant who = another();
  std::stop_source stop;
  Result first = wait(who, stop.get_token());
  ASSERT_TRUE(queued(2));
  const auto place = cluster().lastClaim(key);
  keepBack(aRemoval);
  const Instant stopped = now();
  stop.request_stop();
  expectDoubt([&] { return first.get(); });
  proxy.passThrough();
  const std::size_t before = cluster().requests();
  Result again = wait(who);
  ASSERT_TRUE(waitUntil([&] { return cluster().requests() > before; }));
  const bool inTime = now() - stopped < 1s;  // unless the machine stood still
  EXPECT_FALSE(waitUntil([&] { return cluster().lastClaim(key).created != place.created; }, 7s))
      << "longer than any lease that nobody keeps alive";
  if (inTime) {
    EXPECT_EQ(cluster().lastClaim(key).lease, place.lease);
  }
  stop_.request_stop();
  EXPECT_FALSE(granted(again.get()));
  EXPECT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdLeftBehind, AClaimThatIsKnownToBeGoneMakesNobodyMove) {
  const Claimant goes = another();
  std::stop_source stop;
  Result left = wait(goes, stop.get_token());
  ASSERT_TRUE(queued(2));
  const auto lease = cluster().lastClaim(key).lease;
  keepBack(aRemoval);
  const Instant stopped = now();
  stop.request_stop();
  expectDoubt([&] { return left.get(); });
  sendLate();
  ASSERT_TRUE(queued(1));
  EXPECT_EQ(proxied->release(goes.claim(), soon()), ReleaseOutcome::notOwner);
  const bool inTime = now() - stopped < 1s;  // unless the machine stood still
  const bool moved = waitUntil([&] { return cluster().lastClaim(key).lease != lease; }, 4s);
  EXPECT_FALSE(moved && inTime);
  expectGone();
}

}  // namespace
}  // namespace lockkeeper::test
