// A lease ends on the server, whatever has become of its holder.

#include <atomic>
#include <thread>

#include "getlock_fixture.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using GetLockExpiry = GetLockTest;

constexpr auto granularity = 1s;

TEST_P(GetLockExpiry, AHalfOpenHolderIsFreedWithinItsTtl) {
  const auto driver = store.openProxied();
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(requestFor(who, 2500ms))));
  const Instant lastStatement = now();
  ASSERT_EQ(renew(*driver, who, 2500ms), RenewOutcome::renewed);
  store.proxy.set({.kind = ProxyFault::Kind::blackhole});
  EXPECT_FALSE(store.isFree(who.key));
  EXPECT_EQ(renew(*driver, who, 2500ms, in(100ms)), RenewOutcome::unknown);
  EXPECT_GE(store.proxy.fired(), 1U);
  EXPECT_TRUE(waitUntil([&] { return store.isFree(who.key); }));
  EXPECT_GE(now(), lastStatement + 2500ms) << "not before its lease has ended";
  EXPECT_LE(now(), lastStatement + 2500ms + granularity + schedulingSlack);
}

TEST_P(GetLockExpiry, AHalfOpenHolderIsToldBeforeItsKeyIsFree) {
  LockManager manager(store.openProxied("ioTimeout=500ms"));
  const Lock lock = manager.lock("told", {.ttl = 3s, .safetyMargin = 1s});
  std::atomic<bool> wasFree{true};
  const std::stop_callback<std::function<void()>> onLoss(lock.lost(),
                                                         [&] { wasFree = store.isFree("told"); });
  store.proxy.set({.kind = ProxyFault::Kind::blackhole});
  EXPECT_TRUE(waitUntil([&] { return store.isFree("told"); }));
  EXPECT_TRUE(lock.lost().stop_requested());
  EXPECT_FALSE(wasFree);
}

TEST_P(GetLockExpiry, ALeaseEndsThoughOthersKeepItsSessionAlive) {
  const Claimant silent{};
  const Claimant renewed{};
  const auto driver = store.open("connections=1");
  ASSERT_TRUE(granted(driver->acquire(requestFor(silent, 2s))));
  ASSERT_TRUE(granted(driver->acquire(requestFor(renewed, 2s))));
  const Instant end = in(2s);
  const int sessions = store.server.sessions();
  while (now() < end) {
    ASSERT_EQ(renew(*driver, renewed, 2s), RenewOutcome::renewed);
    std::this_thread::sleep_for(50ms);
  }
  ASSERT_EQ(renew(*driver, renewed, 2s), RenewOutcome::renewed) << "this frees the other";
  EXPECT_TRUE(store.isFree(silent.key));
  EXPECT_FALSE(store.isFree(renewed.key));
  EXPECT_EQ(renew(*driver, silent, 2s), RenewOutcome::notOwner);
  EXPECT_EQ(driver->release(silent.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_EQ(driver->release(renewed.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(store.server.sessions(), sessions) << "all of this was one session";
}

TEST_P(GetLockExpiry, OtherLocksOfAnIdleProcessDoNotProlongALease) {
  const Claimant silent{};
  const auto driver = store.open();
  ASSERT_TRUE(granted(driver->acquire(requestFor(silent, 4s))));
  const Instant granting = now();
  std::this_thread::sleep_for(3s);
  const Claimant late{};
  ASSERT_TRUE(granted(driver->acquire(requestFor(late, 4s))));
  EXPECT_EQ(driver->release(late.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(waitUntil([&] { return store.isFree(silent.key); }));
  EXPECT_LT(now(), granting + 6500ms) << "the late lock's session would have kept it until 7 s";
}

TEST_P(GetLockExpiry, AnEndedLeaseIsFreeForItsOwnProcessAtOnce) {
  const auto driver = store.open("connections=1");
  const Claimant silent{};
  const Claimant renewed{};
  ASSERT_TRUE(granted(driver->acquire(requestFor(silent, 4s))));
  const Instant end = in(4s);
  ASSERT_TRUE(granted(driver->acquire(requestFor(renewed, 4s))));
  Claimant next;
  next.key = silent.key;
  ASSERT_FALSE(granted(driver->acquire(requestFor(next, 4s))));
  std::this_thread::sleep_for(2s);
  ASSERT_EQ(renew(*driver, renewed, 4s), RenewOutcome::renewed) << "the session lives on";
  std::this_thread::sleep_for(std::chrono::nanoseconds(end - now()) + 1ms);
  EXPECT_FALSE(store.isFree(silent.key));
  EXPECT_TRUE(granted(driver->acquire(requestFor(next, 4s))));
  EXPECT_EQ(driver->release(silent.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_EQ(driver->release(next.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(store.isFree(silent.key)) << "it was taken once, not entered twice";
}

TEST_P(GetLockExpiry, RefusesATtlThatTheServerCannotCount) {
  LockManager manager(store.direct);
  try {
    (void)manager.tryLock("k", {.ttl = 999ms});
    FAIL() << "999 ms is less than a second";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("at least 1s"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(manager.tryLock("k", {.ttl = 1s}));
  // Core begins with this one when others have waited for the key.
  EXPECT_THROW(
      (void)capability<Waitable>(*store.direct)->acquireWaiting(requestFor(Claimant{}, 999ms), 1s, {}),
      std::invalid_argument);
}

TEST_P(GetLockExpiry, AKilledHolderIsFreeAtOnce) {
  const Claimant who{};
  const auto driver = store.open();
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_GT(store.server.killSessions(), 0);
  EXPECT_TRUE(waitUntil([&] { return store.isFree(who.key); }));
  EXPECT_EQ(renew(*driver, who), RenewOutcome::notOwner);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::notOwner);
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockExpiry, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
