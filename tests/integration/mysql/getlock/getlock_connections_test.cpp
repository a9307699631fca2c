// Many locks, few connections.

#include <atomic>
#include <thread>
#include <vector>

#include "getlock_fixture.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/rate_policy.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class GetLockConnections : public GetLockTest {
 protected:
  /// Sessions of other tests' drivers may still be ending.
  void SetUp() override {
    ASSERT_TRUE(waitUntil([&] { return store.server.sessions() == 0; }));
  }
};

void holdsAThousand(GetLockStore& store, const std::string& query, int most) {
  constexpr int threadCount = 8;
  constexpr int locksOfEach = 125;
  LockManager manager(store.open(query));
  std::vector<std::vector<Lock>> held(threadCount);
  std::atomic<int> sessions{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < threadCount; ++i) {
      threads.emplace_back([&, i] {
        for (int j = 0; j < locksOfEach; ++j) {
          const std::string key = "many:" + std::to_string(i) + ":" + std::to_string(j);
          held[static_cast<std::size_t>(i)].push_back(manager.lock(key, {.ttl = 8s, .waitFor = 1min}));
        }
      });
    }
  }
  const Instant later = in(9s);
  while (now() < later) {
    sessions = std::max<int>(sessions, store.server.sessions());
    for (const auto& locks : held) {
      for (const Lock& lock : locks) ASSERT_TRUE(lock.valid()) << lock.key();
    }
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_GT(sessions, 0);
  EXPECT_LE(sessions, most);
  for (auto& locks : held) {
    for (Lock& lock : locks) ASSERT_EQ(lock.release(), ReleaseResult::released) << lock.key();
  }
}

TEST_P(GetLockConnections, AThousandLocksNeedSixteenAtMost) {
  holdsAThousand(store, "", 16 + 4);  // and those that draw fences
}

TEST_P(GetLockConnections, AThousandLocksDoWithTwo) { holdsAThousand(store, "connections=2", 2 + 2); }

TEST_P(GetLockConnections, OneThreadNeedsOne) {
  LockManager manager(store.open());
  std::vector<Lock> held;
  for (int i = 0; i < 50; ++i) held.push_back(manager.lock("one:" + std::to_string(i)));
  EXPECT_EQ(store.server.sessions(), 2) << "and one that draws fences";
}

// The fence comes with the grant, where no other lock has to wait for its commit.
TEST_P(GetLockConnections, AFencedLockIsTwoRoundTripsOnOneConnection) {
  const auto driver = store.openProxied();
  const Claimant who{};
  std::vector<Fence> fences;
  for (int i = 0; i < 3; ++i) {
    store.proxy.passThrough();
    const AcquireResult result = driver->acquire(who.request());
    ASSERT_TRUE(granted(result));
    fences.push_back(std::get<Granted>(result).fence.value());
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
  EXPECT_EQ(store.proxy.requests(), 2U);
  EXPECT_EQ(store.proxy.connections(), 1U);
  EXPECT_LT(fences[0], fences[1]);
  EXPECT_LT(fences[1], fences[2]);
}

TEST_P(GetLockConnections, LocksOfDifferentTtlsDoNotShareOne) {
  const auto driver = store.open("connections=2");
  const Claimant first{};
  const Claimant second{};
  ASSERT_TRUE(granted(driver->acquire(requestFor(first, 10s))));
  ASSERT_TRUE(granted(driver->acquire(requestFor(second, 20s))));
  EXPECT_EQ(store.server.sessions(), 2);
  try {
    (void)driver->acquire(requestFor(Claimant{}, 30s));
    FAIL() << "a session has one idle timeout";
  } catch (const StoreUnavailable& error) {
    EXPECT_NE(std::string(error.what()).find("connections="), std::string::npos) << error.what();
  }
  ASSERT_EQ(driver->release(second.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(granted(driver->acquire(requestFor(Claimant{}, 30s))));
}

TEST_P(GetLockConnections, WhoWaitsLeavesHalfOfThemToTheRest) {
  const auto driver = store.open("connections=4");
  auto& waitable = *capability<Waitable>(*driver);
  Claimant holder;
  ASSERT_TRUE(granted(store.direct->acquire(holder.request())));
  std::stop_source stop;
  std::atomic<int> early{0};
  {
    std::vector<std::jthread> waiting;
    for (int i = 0; i < 6; ++i) {
      waiting.emplace_back([&] {
        Claimant who;
        who.key = holder.key;
        const auto result = waitable.acquireWaiting(who.request(), 1min, stop.get_token());
        EXPECT_FALSE(granted(result));
        if (!stop.stop_requested()) ++early;
      });
    }
    EXPECT_TRUE(waitUntil([&] { return early == 4 && store.server.waitingFor("%").size() == 2; }))
        << early << " have not waited";
    const Claimant other{};
    EXPECT_TRUE(granted(driver->acquire(other.request()))) << "there are sessions for the rest";
    EXPECT_EQ(driver->release(other.claim(), soon()), ReleaseOutcome::released);
    stop.request_stop();
  }
  EXPECT_EQ(early, 4);
  EXPECT_EQ(store.direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(store.isFree(holder.key));
}

TEST_P(GetLockConnections, ASlowSessionIsNotWaitedForBeyondTheDeadline) {
  const auto driver = store.openProxied("connections=1&ioTimeout=10s");
  const Claimant first{};
  ASSERT_TRUE(granted(driver->acquire(first.request())));
  store.proxy.set({.kind = ProxyFault::Kind::delay, .pause = 1min});
  std::jthread slow([&] { EXPECT_EQ(renew(*driver, first), RenewOutcome::renewed); });
  ASSERT_TRUE(waitUntil([&] { return store.proxy.fired() > 0; }));
  const Instant deadline = in(200ms);
  EXPECT_THROW((void)driver->acquire(Claimant{}.request(deadline)), StoreUnavailable);
  EXPECT_LT(now(), deadline + schedulingSlack);
  store.proxy.passThrough();
}

// The server locks its list of sessions for each look.
TEST_P(GetLockConnections, ASessionThatEndsNoOtherDoesNotReadTheListOfSessions) {
  const auto driver = store.openProxied();
  store.proxy.set({.kind = ProxyFault::Kind::hold, .text = "PROCESSLIST"});
  const Claimant who{};
  EXPECT_TRUE(granted(driver->acquire(who.request())));
  const RatePolicy policy{"p", {.rate = {1, 1s}, .burst = 1}};
  RateCharge charge{.key = "k", .law = &policy.law()};
  capability<RateDriver>(*driver)->take({&charge, 1}, soon());
  EXPECT_EQ(store.proxy.fired(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockConnections, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
