// A session that does not answer costs its own locks, and those of no other session.

#include <functional>
#include <thread>
#include <vector>

#include "getlock_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using GetLockHangingSession = GetLockTest;

/// Two locks of one driver, each on a session of its own, since their ttls differ. One session has a proxy of
/// its own, which can make it hang.
class TwoSessions {
 public:
  /// Which one is opened first may decide which one the driver asks first.
  TwoSessions(const GetLockStore& store, bool hangingFirst)
      : hangingProxy(store.server.port()),
        proxy_(store.server.port()),
        driver_(openGetLock(store.database, proxy_.port(), "fence=off")) {
    for (const bool hanging : {hangingFirst, !hangingFirst}) {
      proxy_.leadTo(hanging ? hangingProxy.port() : store.server.port());
      const AcquireRequest request = hanging ? requestFor(hangs_, hangingTtl) : requestFor(other_, ttl);
      EXPECT_TRUE(granted(driver_->acquire(request)));
    }
    EXPECT_EQ(proxy_.connections(), 2U);
    EXPECT_EQ(hangingProxy.connections(), 1U);
  }

  /// Renews both, and calls `told` as soon as the driver tells that the other lock is renewed. Returns what
  /// came of the one whose session may hang.
  Renewal renewBoth(Instant deadline, const std::function<void()>& told) {
    std::vector<Renewal> both{{.claim = hangs_.claim(), .ttl = hangingTtl},
                              {.claim = other_.claim(), .ttl = ttl}};
    both[1].told = [&](const Renewal& renewal) {
      if (renewal.outcome == RenewOutcome::renewed) told();
    };
    driver_->renew(both, deadline);
    EXPECT_EQ(both[1].outcome, RenewOutcome::renewed) << both[1].cause;
    return both[0];
  }

  RenewOutcome renewHanging(Instant deadline) { return renew(*driver_, hangs_, hangingTtl, deadline); }

  FaultProxy hangingProxy;  ///< Of the session that may hang.

 private:
  static constexpr auto ttl = 30s;
  static constexpr auto hangingTtl = 40s;

  FaultProxy proxy_;
  const std::shared_ptr<LockDriver> driver_;
  const Claimant hangs_{};
  const Claimant other_{};
};

constexpr auto operationTimeout = 3s;
constexpr auto wellBefore = 1s;

TEST_P(GetLockHangingSession, IsNotWaitedForBeforeTheOthersAreTold) {
  for (const bool hangingFirst : {true, false}) {
    SCOPED_TRACE(hangingFirst ? "opened first" : "opened second");
    TwoSessions sessions(store, hangingFirst);
    sessions.hangingProxy.set({.kind = ProxyFault::Kind::blackhole});
    const Instant deadline = in(operationTimeout);
    Instant told = Instant::max();
    const Renewal hanging = sessions.renewBoth(deadline, [&] { told = now(); });
    EXPECT_LT(told, deadline - wellBefore);
    EXPECT_EQ(hanging.outcome, RenewOutcome::unknown);
    EXPECT_GT(sessions.hangingProxy.fired(), 0U);
  }
}

TEST_P(GetLockHangingSession, InAnotherCallsHandsIsNotWaitedForEither) {
  TwoSessions sessions(store, true);
  sessions.hangingProxy.set({.kind = ProxyFault::Kind::blackhole});
  const std::jthread user([&] { (void)sessions.renewHanging(in(2 * operationTimeout)); });
  ASSERT_TRUE(waitUntil([&] { return sessions.hangingProxy.fired() > 0; }));
  const Instant deadline = in(operationTimeout);
  Instant told = Instant::max();
  const Renewal hanging = sessions.renewBoth(deadline, [&] { told = now(); });
  EXPECT_LT(told, deadline - wellBefore);
  EXPECT_EQ(hanging.outcome, RenewOutcome::unavailable);
  EXPECT_NE(hanging.cause, "");
}

TEST_P(GetLockHangingSession, IsRenewedAsSoonAsAnotherCallGivesItBack) {
  TwoSessions sessions(store, true);
  sessions.hangingProxy.set({.kind = ProxyFault::Kind::delay, .pause = 1h});
  const std::jthread user([&] { EXPECT_EQ(sessions.renewHanging(soon()), RenewOutcome::renewed); });
  ASSERT_TRUE(waitUntil([&] { return sessions.hangingProxy.fired() > 0; }));
  const Instant deadline = soon();
  const Renewal hanging = sessions.renewBoth(deadline, [&] { sessions.hangingProxy.passThrough(); });
  EXPECT_EQ(hanging.outcome, RenewOutcome::renewed) << hanging.cause;
  EXPECT_LT(now(), deadline);
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockHangingSession, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
