// Claims in the server's queue, and what may happen to them there.

#include <Poco/Data/Session.h>

#include <future>
#include <stop_token>
#include <thread>
#include <vector>

#include "getlock_fixture.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Somebody holds the key, and somebody else waits for it on the server.
class GetLockWait : public GetLockTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(granted(store.direct->acquire(holder.request())));
    waiter.key = holder.key;
    result = std::async(std::launch::async, [this] {
      return capability<Waitable>(*driver)->acquireWaiting(waiter.request(), 1min, stop.get_token());
    });
    ASSERT_TRUE(waitUntil([&] { return queued() == 1U; }));
  }
  void TearDown() override { stop.request_stop(); }

  std::size_t queued() const { return store.server.waitingFor(holder.key).size(); }

  /// KILL or KILL QUERY of the session that waits.
  void kill(const std::string& command) {
    const auto waiting = store.server.waitingFor(holder.key);
    ASSERT_EQ(waiting.size(), 1U);
    store.server.execute(command + " " + std::to_string(waiting.front()));
  }

  const std::shared_ptr<LockDriver> driver = store.openProxied();
  Claimant holder;
  Claimant waiter;
  std::stop_source stop;
  std::future<AcquireResult> result;
};

TEST_P(GetLockWait, BrokenOffByAnOperatorIsNeitherAcquiredNorBusy) {
  kill("KILL QUERY");
  EXPECT_THROW((void)result.get(), StoreUnavailable);
  EXPECT_EQ(store.direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(store.isFree(holder.key));
  EXPECT_TRUE(granted(driver->acquire(waiter.request(soon(), true)))) << "the driver goes on";
}

TEST_P(GetLockWait, KilledWithItsSessionIsUnknownAndMayBeSentAgain) {
  kill("KILL");
  EXPECT_THROW((void)result.get(), OutcomeUnknown);
  EXPECT_EQ(store.direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(granted(driver->acquire(waiter.request(soon(), true))));
  EXPECT_EQ(driver->release(waiter.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(store.isFree(holder.key));
}

TEST_P(GetLockWait, StoppedLeavesTheQueueAndKeepsItsSession) {
  stop.request_stop();
  EXPECT_FALSE(granted(result.get()));
  EXPECT_EQ(queued(), 0U);
  const std::size_t connections = store.proxy.connections();  // the wait's, and the one that ended it
  EXPECT_FALSE(
      granted(capability<Waitable>(*driver)->acquireWaiting(waiter.request(), 200ms, std::stop_token())));
  EXPECT_EQ(queued(), 0U);
  EXPECT_EQ(store.proxy.connections(), connections);
}

TEST_P(GetLockWait, StoppedBehindADeadNetworkReturnsAndLeavesTheQueue) {
  store.proxy.set({.kind = ProxyFault::Kind::blackhole});
  const Instant stopped = now();
  stop.request_stop();
  EXPECT_FALSE(granted(result.get()));
  EXPECT_LT(now(), stopped + 2 * 3s + schedulingSlack);
  store.proxy.endConnections(Ending::rst);
  EXPECT_TRUE(waitUntil([&] { return queued() == 0U; }));
  EXPECT_EQ(store.direct->release(holder.claim(), soon()), ReleaseOutcome::released);
}

TEST_P(GetLockWait, GetsAFenceAboveTheHolders) {
  const Fence first = *store.direct->holder(holder.key, soon())->fence;
  EXPECT_EQ(store.direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  const AcquireResult got = result.get();
  ASSERT_TRUE(granted(got));
  EXPECT_GT(*std::get<Granted>(got).fence, first);
  EXPECT_EQ(driver->holder(holder.key, soon())->fence, std::get<Granted>(got).fence);
}

TEST_P(GetLockWait, SurvivesStatementLimitsOfTheServer) {
  // They would end the wait early; the tests' own sessions show that they are in force.
  const bool mariadb = GetParam() == Brand::mariadb;
  const std::string limit = mariadb ? "max_statement_time = 0.5" : "max_execution_time = 500";
  const std::string none = mariadb ? "max_statement_time = 0" : "max_execution_time = 0";
  store.server.execute("SET GLOBAL " + limit);
  const auto limited = store.open();
  auto waiting = std::async(std::launch::async, [&] {
    Claimant other;
    other.key = holder.key;
    return capability<Waitable>(*limited)->acquireWaiting(other.request(), 1500ms, {});
  });
  const Instant started = now();
  EXPECT_FALSE(granted(waiting.get()));
  store.server.execute("SET GLOBAL " + none);
  EXPECT_GE(now(), started + 1400ms);
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockWait, ::testing::ValuesIn(allBrands), brandName);

using GetLockNeighbours = GetLockTest;

TEST_P(GetLockNeighbours, ForeignClientsExcludeUsAndAreExcluded) {
  Poco::Data::Session foreign("MySQL", store.server.connectionString(store.database), 10);
  const auto ask = [&](const std::string& query) {
    int answer = -1;
    foreign << query, Poco::Data::Keywords::into(answer), Poco::Data::Keywords::now;
    return answer;
  };
  const Claimant who{};
  ASSERT_EQ(ask("SELECT GET_LOCK('" + who.key + "', 0)"), 1);
  EXPECT_FALSE(granted(store.direct->acquire(who.request())));
  const auto seen = store.direct->holder(who.key, soon());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->owner, "");
  EXPECT_FALSE(seen->fence);
  EXPECT_FALSE(seen->remaining);
  ASSERT_EQ(ask("SELECT RELEASE_LOCK('" + who.key + "')"), 1);
  ASSERT_TRUE(granted(store.direct->acquire(who.request())));
  EXPECT_EQ(ask("SELECT GET_LOCK('" + who.key + "', 0)"), 0);
}

// Each of the others waits for longer than a claim with a short ttl stands in the queue at a time.
TEST_P(GetLockNeighbours, AClaimWithAShortTtlGetsItsTurnBehindALongQueue) {
  const Claimant who{};
  std::vector<std::jthread> others;
  for (int i = 0; i < 6; ++i) {
    others.emplace_back([&](const std::stop_token& over) {
      Poco::Data::Session foreign("MySQL", store.server.connectionString(store.database), 10);
      using Poco::Data::Keywords::now;
      while (!over.stop_requested()) {
        foreign << "DO GET_LOCK('" + who.key + "', 60)", now;
        foreign << "DO SLEEP(0.3)", now;
        foreign << "DO RELEASE_LOCK('" + who.key + "')", now;
      }
    });
  }
  ASSERT_TRUE(waitUntil([&] { return store.server.waitingFor(who.key).size() == 5U; }));
  EXPECT_TRUE(granted(capability<Waitable>(*store.direct)->acquireWaiting(requestFor(who, 1s), 15s, {})));
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockNeighbours, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
