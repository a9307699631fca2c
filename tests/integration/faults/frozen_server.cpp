#include "frozen_server.h"

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "succeeds_in_the_end.h"
#include "wait_until.h"

namespace lockkeeper::test {

using namespace std::chrono_literals;

void freezeDuring(const Operation& operation, const FreezableStore& store) {
  for (const bool connectedBefore : {true, false}) {
    SCOPED_TRACE(connectedBefore ? "connected before" : "connecting");
    const auto driver = store.open();
    const Claimant who{};
    operation.prepare(*store.direct, who);
    if (connectedBefore) {
      // With a claim: what a driver asks once before its first one is answered.
      const Claimant other{};
      EXPECT_TRUE(granted(driver->acquire(other.request())));
      EXPECT_EQ(driver->release(other.claim(), soon()), ReleaseOutcome::released);
    }

    store.freeze();
    const Instant deadline = in(attemptTime);
    const std::string said = attempt(operation, *driver, who, deadline);
    EXPECT_LT(now(), deadline + store.timeouts + schedulingSlack);
    store.thaw();

    EXPECT_EQ(said.find("error: "), 0U) << said;
    if (!connectedBefore) {
      EXPECT_EQ(said, std::string("error: ") + toString(ErrorCode::storeUnavailable)) << "nothing was sent";
    } else if (operation.changesTheStore) {
      EXPECT_EQ(said, std::string("error: ") + toString(ErrorCode::outcomeUnknown)) << "it may be done yet";
    }
    // The server works off what has reached it; the backoff after a failed connect may refuse for a moment.
    ASSERT_TRUE(waitUntil([&] {
      return !attempt(operations().back(), *driver, who, soon()).starts_with("error") &&
             store.isFree(who.key);
    }));
    const Claimant next{};
    bool again = false;
    succeedsInTheEnd(
        [&] { EXPECT_TRUE(granted(driver->acquire(next.request(soon(), std::exchange(again, true))))); });
    succeedsInTheEnd([&] { EXPECT_EQ(driver->release(next.claim(), soon()), ReleaseOutcome::released); });
  }
}

void freezeUnderLoad(const FreezableStore& store) {
  constexpr int threadCount = 8;
  constexpr int freezes = 3;
  const auto driver = store.open();
  std::atomic<bool> stop{false};
  std::atomic<int> late{0};
  std::atomic<int> faults{0};
  std::atomic<int> grants{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < threadCount; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const Claimant who{};
        for (const Operation* operation : {&operations()[0], &operations()[4]}) {  // acquire, release
          const Instant deadline = in(attemptTime);
          const std::string said = attempt(*operation, *driver, who, deadline);
          if (now() > deadline + store.timeouts + schedulingSlack) ++late;
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
    store.freeze();
    EXPECT_TRUE(waitUntil([&] { return faults >= faultsBefore + threadCount; })) << "the freeze must be felt";
    store.thaw();
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(late, 0);
}

void freezeBeforeAClaim(const FreezableStore& store) {
  const std::string key = Claimant().key;
  ManagerOptions options;
  options.operationTimeout = attemptTime;
  LockManager manager(store.open(), options);
  ASSERT_TRUE(manager.tryLock(key, {.waitFor = 20s})) << "connects, and prepares what a claim takes";
  store.freeze();
  EXPECT_THROW((void)manager.tryLock(key, {.ttl = longTtl}), Error);
  store.thaw();
  LockManager other(store.direct);
  EXPECT_TRUE(other.tryLock(key, {.waitFor = 60s}))
      << "the late grant must be given back, long before its ttl";
}

void freezeUnderAHolder(const FreezableStore& store) {
  constexpr auto ttl = 8s;
  LockManager manager(store.open());
  Instant end;
  std::optional<Lock> lock;
  succeedsInTheEnd([&] {
    end = now() + ttl;  // Or a little later: the lease begins after this.
    lock = manager.tryLock(Claimant().key, {.ttl = ttl, .safetyMargin = 3900ms});
  });
  ASSERT_TRUE(lock);
  std::atomic<bool> inTime{false};
  const std::stop_callback<std::function<void()>> onLoss(lock->lost(), [&] { inTime = now() < end; });
  store.freeze();
  EXPECT_TRUE(waitUntil([&] { return lock->lost().stop_requested(); }));
  EXPECT_FALSE(lock->valid());
  store.thaw();
  EXPECT_TRUE(waitUntil([&] { return inTime.load(); }, 1s));
}

}  // namespace lockkeeper::test
