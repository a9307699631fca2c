// Claims that are left in a queue whose other claims are kept alive.

#include "late_fixture.h"

namespace lockkeeper::test {
namespace {

/// One holds the lock, and one of the same process as the others waits until the end.
class EtcdLeftBehind : public EtcdLate {
 protected:
  static constexpr const char* othersKeepTheirPlaces = "those who still wait keep their places";

  void begin() {
    EXPECT_TRUE(granted(direct->acquire(holds.request())));
    stays_ = wait(stays);
    EXPECT_TRUE(queued(1));
    place_ = cluster().lastClaim(key).created;
  }

  /// What is left behind goes, though the lease on which it waits was kept alive for others. Returns whether
  /// the one that stays has kept its place.
  bool isGoneAndOtherStays() {
    EXPECT_TRUE(queued(1, 30s)) << "it is kept alive";
    EXPECT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
    const AcquireResult result = stays_.get();
    EXPECT_TRUE(granted(result));
    EXPECT_EQ(proxied->release(stays.claim(), soon()), ReleaseOutcome::released);
    const auto* grant = std::get_if<Granted>(&result);
    return grant != nullptr && grant->fence == static_cast<Fence>(place_);
  }

  const Claimant holds = another();
  const Claimant stays = another();

 private:
  Result stays_;
  std::int64_t place_ = 0;
};

TEST_F(EtcdLeftBehind, AWaiterThatCannotLeaveTheQueueIsGoneSoon) {
  begin();
  std::stop_source stop;
  Result goes = wait(another(), stop.get_token());
  ASSERT_TRUE(queued(2));
  keepBack(aRemoval);
  stop.request_stop();
  expectDoubt([&] { return goes.get(); });
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_TRUE(isGoneAndOtherStays()) << othersKeepTheirPlaces;
}

TEST_F(EtcdLeftBehind, AClaimThatEntersTheQueueLateIsGoneSoon) {
  begin();
  const Claimant goes = another();
  keepBack(aPut);
  expectDoubt([&] { return wait(goes).get(); });
  EXPECT_EQ(proxied->release(goes.claim(), soon()), ReleaseOutcome::notOwner);
  sendLate();
  EXPECT_TRUE(isGoneAndOtherStays()) << othersKeepTheirPlaces;
}

TEST_F(EtcdLeftBehind, WhoAsksAgainKeepsItsPlaceAndOthersNeedNotMove) {
  begin();
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
  std::stop_source stopAgain;
  Result again = wait(who, stopAgain.get_token());
  ASSERT_TRUE(waitUntil([&] { return cluster().requests() > before; }));
  const bool inTime = now() - stopped < 1s;  // unless the machine stood still
  // Longer than any lease that nobody keeps alive.
  const bool moved = waitUntil([&] { return cluster().lastClaim(key).created != place.created; }, 7s);
  if (inTime && !moved) {
    EXPECT_EQ(cluster().lastClaim(key).lease, place.lease);
  }
  stopAgain.request_stop();
  EXPECT_FALSE(granted(again.get()));
  EXPECT_FALSE(moved && inTime);
  EXPECT_TRUE(isGoneAndOtherStays()) << othersKeepTheirPlaces;
}

TEST_F(EtcdLeftBehind, AClaimThatIsKnownToBeGoneMakesNobodyMove) {
  begin();
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
  EXPECT_TRUE(isGoneAndOtherStays()) << othersKeepTheirPlaces;
}

}  // namespace
}  // namespace lockkeeper::test
