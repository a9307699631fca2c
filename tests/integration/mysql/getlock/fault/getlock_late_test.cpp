// Claims that a server gets when their caller has given them up.

#include "getlock_fixture.h"
#include "late_claim.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

LateStore lateGetLock(Brand brand, const std::string& query) {
  const auto server = std::make_shared<GetLockStore>(brand);
  LateStore store{.proxied = server->openProxied(query),
                  .direct = server->open(query),
                  .proxies = {&server->proxy},
                  .servers = server};
  const Claimant first{};
  EXPECT_TRUE(granted(store.proxied->acquire(first.request())));
  EXPECT_EQ(store.proxied->release(first.claim(), soon()), ReleaseOutcome::released);
  return store;
}

constexpr LateStoreCase lateSessions[] = {
    {"Mariadb", [] { return lateGetLock(Brand::mariadb, ""); }, true, false},
    {"MariadbWithoutFence", [] { return lateGetLock(Brand::mariadb, "fence=off"); }, false, false},
    {"Mysql", [] { return lateGetLock(Brand::mysql, ""); }, true, false},
    {"MysqlWithoutFence", [] { return lateGetLock(Brand::mysql, "fence=off"); }, false, false},
};
INSTANTIATE_TEST_SUITE_P(Stores, LateClaim, ::testing::ValuesIn(lateSessions), lateStoreName);

class GetLockLate : public GetLockTest {
 protected:
  /// Its connection stays, and the server gets it when deliver() is called.
  void sendLate(AcquireRequest request) {
    store.proxy.set({.kind = ProxyFault::Kind::step, .text = std::string(request.claim.key)});
    request.deadline = in(300ms);
    EXPECT_THROW((void)driver->acquire(request), OutcomeUnknown);
    EXPECT_EQ(store.proxy.fired(), 1U);
  }
  void deliver() {
    store.proxy.passThrough();
    EXPECT_TRUE(waitUntil([&] { return !store.isFree(who.key); }));
  }

  const std::shared_ptr<LockDriver> driver = [this] {
    auto made = store.openProxied("connections=1");
    const Claimant first{};
    EXPECT_TRUE(granted(made->acquire(first.request())));
    EXPECT_EQ(made->release(first.claim(), soon()), ReleaseOutcome::released);
    return made;
  }();
  const Claimant who{};
};

TEST_P(GetLockLate, AGrantThatItsSessionTellsLateHasOneTurnAndItsOwnFence) {
  AcquireRequest request = who.request();
  request.localHolders = 64;
  sendLate(request);
  deliver();
  const Claimant other{.key = who.key};
  EXPECT_FALSE(granted(store.direct->acquire(other.request())));
  request.resend = true;
  const AcquireResult found = driver->acquire(request);
  ASSERT_TRUE(granted(found));
  EXPECT_EQ(std::get<Granted>(found).localHolders, 1U);
  EXPECT_FALSE(granted(store.direct->acquire(other.request())));
  ASSERT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  const AcquireResult next = store.direct->acquire(other.request());
  ASSERT_TRUE(granted(next));
  EXPECT_GT(*std::get<Granted>(next).fence, *std::get<Granted>(found).fence);
}

TEST_P(GetLockLate, AClaimThatNobodyAsksForAgainKeepsTheKeyForItsTtlAtMost) {
  AcquireRequest request = requestFor(who, 1s);
  sendLate(request);
  const Instant delivered = now();
  deliver();
  EXPECT_TRUE(waitUntil([&] { return store.isFree(who.key); }));
  EXPECT_LT(now() - delivered, 1s + schedulingSlack);
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockLate, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
