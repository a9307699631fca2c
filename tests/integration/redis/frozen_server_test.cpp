#include <atomic>
#include <thread>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "operation.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr auto attemptTime = 200ms;
constexpr const char* shortTimeouts = "ioTimeout=300ms&connectTimeout=300ms";
constexpr auto ioTimeout = 300ms;

/// redis-server is stopped by SIGSTOP: connections stay, nothing is answered.
class FrozenServer : public RedisFaultTest, public ::testing::WithParamInterface<Operation> {};

TEST_P(FrozenServer, EveryCallReturnsByItsDeadlineAndLeavesNothingBehind) {
  const Operation& operation = GetParam();
  for (const bool connectedBefore : {true, false}) {
    SCOPED_TRACE(connectedBefore ? "connected before" : "connecting");
    const auto driver = openRedis(server.port(), shortTimeouts);
    const Claimant who;
    operation.prepare(*direct, who);
    if (connectedBefore) (void)driver->holder(who.key, soon());

    server.pause();
    const Instant deadline = in(attemptTime);
    const std::string said = attempt(operation, *driver, who, deadline);
    EXPECT_LT(now(), deadline + ioTimeout + schedulingSlack);
    server.resume();

    EXPECT_EQ(said.find("error: "), 0U) << said;
    if (!connectedBefore) {
      EXPECT_EQ(said, std::string("error: ") + toString(ErrorCode::storeUnavailable)) << "nothing was sent";
    } else if (operation.changesTheStore) {
      EXPECT_EQ(said, std::string("error: ") + toString(ErrorCode::outcomeUnknown)) << "it may be done yet";
    }
    // The backoff after a failed connect may refuse for a moment.
    ASSERT_TRUE(
        waitUntil([&] { return attempt(operations().back(), *driver, who, soon()).find("error") != 0; }));
    EXPECT_TRUE(isFree(who.key));
    const Claimant next;
    EXPECT_TRUE(granted(driver->acquire(next.request())));
    EXPECT_EQ(driver->release(next.claim(), soon()), ReleaseOutcome::released);
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, FrozenServer, ::testing::ValuesIn(operations()), operationName);

using FrozenServerWithThreads = RedisFaultTest;

TEST_F(FrozenServerWithThreads, AllThreadsReturnByTheirDeadlines) {
  constexpr int threadCount = 8;
  constexpr int freezes = 3;
  const auto driver = openRedis(server.port(), shortTimeouts);
  std::atomic<bool> stop{false};
  std::atomic<int> late{0};
  std::atomic<int> faults{0};
  std::atomic<int> grants{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < threadCount; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const Claimant who;
        for (const Operation* operation : {&operations()[0], &operations()[4]}) {  // acquire, release
          const Instant deadline = in(attemptTime);
          const std::string said = attempt(*operation, *driver, who, deadline);
          if (now() > deadline + ioTimeout + schedulingSlack) ++late;
          if (said.starts_with("error")) ++faults;
          if (said.starts_with("granted")) ++grants;
        }
      }
    });
  }
  for (int freeze = 0; freeze < freezes; ++freeze) {
    const int before = grants;
    EXPECT_TRUE(waitUntil([&] { return grants > before + threadCount; }))
        << "things work between two freezes";
    const int faultsBefore = faults;
    server.pause();
    EXPECT_TRUE(waitUntil([&] { return faults >= faultsBefore + threadCount; })) << "the freeze must be felt";
    server.resume();
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(late, 0);
}

using FrozenServerUnderManager = RedisFaultTest;

TEST_F(FrozenServerUnderManager, AClaimThatWasGivenUpDoesNotKeepTheKey) {
  ManagerOptions options;
  options.operationTimeout = attemptTime;
  LockManager manager(openRedis(server.port(), shortTimeouts), options);
  (void)manager.holder("connects");
  server.pause();
  EXPECT_THROW((void)manager.tryLock("k", {.ttl = longTtl}), Error);
  server.resume();
  LockManager other(direct);
  EXPECT_TRUE(other.tryLock("k", {.waitFor = 60s}))
      << "the late grant must be given back, long before its ttl";
}

TEST_F(FrozenServerUnderManager, AHolderIsToldBeforeItsLeaseEnds) {
  constexpr auto ttl = 2000ms;
  LockManager manager(openRedis(server.port(), shortTimeouts));
  const Instant end = now() + ttl;  // Or a little later: the lease begins after this.
  const Lock lock = manager.lock("k", {.ttl = ttl, .safetyMargin = 900ms});
  std::atomic<bool> inTime{false};
  const std::stop_callback<std::function<void()>> onLoss(lock.lost(), [&] { inTime = now() < end; });
  server.pause();
  EXPECT_TRUE(waitUntil([&] { return lock.lost().stop_requested(); }));
  EXPECT_FALSE(lock.valid());
  server.resume();
  EXPECT_TRUE(waitUntil([&] { return inTime.load(); }, 1s));
}

}  // namespace
}  // namespace lockkeeper::test
