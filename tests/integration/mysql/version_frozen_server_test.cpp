#include <atomic>
#include <thread>
#include <tuple>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "operation.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr auto attemptTime = 200ms;
constexpr const char* shortTimeouts = "connectTimeout=1s";
constexpr auto connectTimeout = 1s;

/// The server is stopped by SIGSTOP: connections stay, nothing is answered.
class FrozenVersionServer : public ::testing::TestWithParam<std::tuple<Brand, Operation>> {
 protected:
  VersionStore store{std::get<Brand>(GetParam())};
};

TEST_P(FrozenVersionServer, EveryCallReturnsByItsDeadlineAndLeavesNothingBehind) {
  const Operation& operation = std::get<Operation>(GetParam());
  for (const bool connectedBefore : {true, false}) {
    SCOPED_TRACE(connectedBefore ? "connected before" : "connecting");
    const auto driver = store.open(shortTimeouts);
    const Claimant who;
    operation.prepare(*store.direct, who);
    if (connectedBefore) (void)driver->holder(who.key, soon());

    store.server.pause();
    const Instant deadline = in(attemptTime);
    const std::string said = attempt(operation, *driver, who, deadline);
    EXPECT_LT(now(), deadline + connectTimeout + schedulingSlack);
    store.server.resume();

    EXPECT_EQ(said.find("error: "), 0U) << said;
    if (!connectedBefore) {
      EXPECT_EQ(said, std::string("error: ") + toString(ErrorCode::storeUnavailable)) << "nothing was sent";
    } else if (operation.changesTheStore) {
      EXPECT_EQ(said, std::string("error: ") + toString(ErrorCode::outcomeUnknown)) << "it may be done yet";
    }
    // The server works off what has reached it.
    ASSERT_TRUE(waitUntil([&] {
      (void)attempt(operations().back(), *driver, who, soon());
      return store.isFree(who.key);
    }));
    const Claimant next;
    EXPECT_TRUE(granted(driver->acquire(next.request())));
    EXPECT_EQ(driver->release(next.claim(), soon()), ReleaseOutcome::released);
  }
}

TEST_P(FrozenVersionServer, DestroyingADriverDoesNotWaitForTheServer) {
  auto driver = store.open(shortTimeouts);
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  store.server.pause();
  const Instant start = now();
  driver.reset();
  EXPECT_LT(now() - start, schedulingSlack);
  store.server.resume();
}

INSTANTIATE_TEST_SUITE_P(Operations, FrozenVersionServer,
                         ::testing::Combine(::testing::ValuesIn(allBrands),
                                            ::testing::ValuesIn(operations())),
                         [](const auto& each) {
                           return std::string(nameOf(std::get<Brand>(each.param))) +
                                  std::get<Operation>(each.param).name;
                         });

using FrozenVersionServerUnderLoad = VersionTest;

TEST_P(FrozenVersionServerUnderLoad, AllThreadsReturnByTheirDeadlines) {
  constexpr int threadCount = 8;
  constexpr int freezes = 3;
  const auto driver = store.open(shortTimeouts);
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
          if (now() > deadline + connectTimeout + schedulingSlack) ++late;
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
    store.server.pause();
    EXPECT_TRUE(waitUntil([&] { return faults >= faultsBefore + threadCount; })) << "the freeze must be felt";
    store.server.resume();
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(late, 0);
}

TEST_P(FrozenVersionServerUnderLoad, AClaimThatWasGivenUpDoesNotKeepTheKey) {
  ManagerOptions options;
  options.operationTimeout = attemptTime;
  LockManager manager(store.open(shortTimeouts), options);
  (void)manager.holder("connects");
  store.server.pause();
  EXPECT_THROW((void)manager.tryLock("k", {.ttl = longTtl}), Error);
  store.server.resume();
  LockManager other(store.direct);
  EXPECT_TRUE(other.tryLock("k", {.waitFor = 60s}))
      << "the late grant must be given back, long before its ttl";
}

TEST_P(FrozenVersionServerUnderLoad, AHolderIsToldBeforeItsLeaseEnds) {
  constexpr auto ttl = 2000ms;
  LockManager manager(store.open(shortTimeouts));
  const Instant end = now() + ttl;  // Or a little later: the lease begins after this.
  const Lock lock = manager.lock("k", {.ttl = ttl, .safetyMargin = 900ms});
  std::atomic<bool> inTime{false};
  const std::stop_callback<std::function<void()>> onLoss(lock.lost(), [&] { inTime = now() < end; });
  store.server.pause();
  EXPECT_TRUE(waitUntil([&] { return lock.lost().stop_requested(); }));
  EXPECT_FALSE(lock.valid());
  store.server.resume();
  EXPECT_TRUE(waitUntil([&] { return inTime.load(); }, 1s));
}

INSTANTIATE_TEST_SUITE_P(Brands, FrozenVersionServerUnderLoad, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
