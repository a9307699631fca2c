// Each allocation of a call fails once: the call ends with std::bad_alloc or without harm, and leaves nothing
// behind that keeps the next caller from the key.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "../lock/faulty_driver.h"
#include "each_allocation.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"
#include "short_after_waiting.h"
#include "wait_until.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
using lockkeeper::testing::FakeRandom;
namespace {

using namespace std::chrono_literals;

class LockShortage : public ::testing::Test {
 protected:
  void expectFree() {
    // What was given back is released in the background.
    const auto next = other.tryLock(key, {.ttl = 1h, .waitFor = 10s});
    ASSERT_TRUE(next);
    EXPECT_TRUE(next->valid());
  }

  // Longer than a std::string holds without memory of its own.
  const std::string key = "a key that is longer than a short string";
  const std::shared_ptr<MemoryDriver> driver = std::make_shared<MemoryDriver>();
  LockManager manager{driver};
  LockManager other{driver};
};

TEST_F(LockShortage, ACallThatFailsLeavesTheKeyToTheNext) {
  const auto allocations =
      failEachAllocation([&] { EXPECT_TRUE(manager.tryLock(key, {.ttl = 1h})); }, [&] { expectFree(); },
                         [&] { manager = LockManager(driver); });  // makes all anew
  EXPECT_GT(allocations, 2u);
}

TEST_F(LockShortage, ARefusedCallHarmsNobody) {
  auto held = manager.tryLock(key, {.ttl = 1h});
  failEachAllocation([&] { EXPECT_FALSE(manager.tryLock(key)); }, [&] { EXPECT_TRUE(held->valid()); });
  held.reset();
  expectFree();
}

TEST_F(LockShortage, ALossThatCannotBeToldIsTakenForOne) {
  const auto held = manager.tryLock(key, {.ttl = 1h});
  std::stop_token lost;
  {
    const FailingAllocation failing(0);
    lost = held->lost();
    ASSERT_TRUE(FailingAllocation::happened());
  }
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_FALSE(held->lost().stop_requested());
}

TEST_F(LockShortage, AReleaseFreesTheKeyAllTheSame) {
  std::optional<Lock> held;
  failEachAllocation([&] { held->release(); }, [&] { expectFree(); },
                     [&] { held = manager.tryLock(key, {.ttl = 1h}); });
}

TEST_F(LockShortage, AReleaseInAnOutageEndsNoProcess) {
  const auto network = std::make_shared<FaultyDriver>(driver);
  LockManager far(network);
  std::optional<Lock> held;
  failEachAllocation([&] { held->release(); },
                     [&] {
                       network->heal();
                       driver->breakLock(key, Instant::max());  // what nobody had the memory to release
                       expectFree();
                     },
                     [&] {
                       held = far.tryLock(key, {.ttl = 1h});
                       network->failAlways(Call::release, Fault::unavailable);
                     });
}

class KeeperShortage : public LockShortage {
 protected:
  const std::shared_ptr<FakeClock> time = std::make_shared<FakeClock>();
  const std::shared_ptr<ShortAfterWaiting> clock = std::make_shared<ShortAfterWaiting>(time);
  const std::shared_ptr<MemoryDriver> inner = std::make_shared<MemoryDriver>(time);
  const std::shared_ptr<FaultyDriver> network = std::make_shared<FaultyDriver>(inner);
  std::optional<LockManager> keeps{std::in_place, network, ManagerOptions{.environment = {.clock = clock}}};
};

TEST_F(KeeperShortage, ARenewalForWhichThereIsNoMemoryIsMadeUpFor) {
  const auto held = keeps->lock(key, {.ttl = 30s});
  for (int renewals = 1; renewals <= 18; ++renewals) {
    time->advance(10s);
    for (int i = 0; i < 20'000 && network->calls(Call::renew) < renewals; ++i) {
      if (time->awaitWakeUpAt(time->now() + 100ms, 1ms)) time->advance(100ms);  // it pauses
    }
    ASSERT_EQ(network->calls(Call::renew), renewals);
    network->awaitCalls(Call::renew, renewals);  // it has read the clock
  }
  EXPECT_TRUE(held.valid());
  EXPECT_GT(clock->failures, 0);
}

TEST_F(KeeperShortage, EachLossIsTold) {
  clock->mostSucceeding = 0;
  std::vector<Lock> held;
  std::vector<std::stop_token> lost;
  for (int i = 0; i < 200; ++i) {
    held.push_back(keeps->lock(std::to_string(i), {.ttl = 1s + i * 1s, .renew = Renew::manual}));
    lost.push_back(held.back().lost());
  }
  for (int i = 0; i < 200; ++i) {
    time->advance(1s);
    ASSERT_TRUE(time->awaitWaiters(2));
  }
  keeps.reset();
  held.clear();  // with the last one, the threads end
  EXPECT_TRUE(std::ranges::all_of(lost, &std::stop_token::stop_requested));
}

TEST_F(KeeperShortage, ALossThatARenewalFindsIsToldBeforeTheLeaseEnds) {
  clock->mostSucceeding = 8;
  for (int i = 0; i < 45; ++i) {
    const auto held = keeps->lock(key, {.ttl = 30s});
    const std::stop_token lost = held.lost();
    ASSERT_TRUE(inner->breakLock(key, Instant::max()));
    const Instant end = time->now() + 20s;
    time->advance(10s);
    for (int i = 0; i < 20'000 && time->now() < end && !lost.stop_requested(); ++i) {
      if (time->awaitWakeUpAt(time->now() + 100ms, 1ms)) time->advance(100ms);  // it pauses
    }
    ASSERT_TRUE(lost.stop_requested());
  }
  EXPECT_GT(clock->failures, 0);
}

TEST_F(LockShortage, ALossThatTheStoreReportsIsTold) {
  std::optional<Lock> held;
  std::stop_token lost;
  int broken = 0;
  failEachAllocation([&] { driver->breakLock(key, Instant::max()); },
                     [&] {
                       if (driver->holder(key, Instant::max())) return;
                       ++broken;
                       EXPECT_TRUE(waitUntil([&] { return lost.stop_requested(); }));
                     },
                     [&] {
                       held.reset();
                       held = manager.tryLock(key, {.ttl = 1h});
                       lost = held->lost();
                     });
  EXPECT_GT(broken, 1);
}

TEST_F(LockShortage, AReleaseServesTheNextOrTellsItThatThereWasNoMemory) {
  const auto clock = std::make_shared<FakeClock>();
  MemoryDriver store(clock);
  FakeRandom random(7);
  const std::string longOwner = "an owner that is longer than a short string";
  for (const std::optional<Share>& share : {std::optional<Share>(), std::optional(Share{})}) {
    SCOPED_TRACE(share ? "a share" : "the whole key");
    std::optional<Claim> holder;
    std::future<bool> waiting;
    bool wasTold = false;
    const auto wait = [&](const Claim& claim) {
      try {
        const auto result = store.acquireWaiting({claim, 1h, {}}, 1min, {});
        return std::holds_alternative<Granted>(result) &&
               store.release(claim, {}) == ReleaseOutcome::released;
      } catch (const std::bad_alloc&) {
        return wasTold = true;
      }
    };
    failEachAllocation([&] { EXPECT_EQ(store.release(*holder, {}), ReleaseOutcome::released); },
                       [&] {
                         const bool isOver = waiting.wait_for(10s) == std::future_status::ready;
                         EXPECT_TRUE(isOver);
                         if (!isOver) clock->advance(1min);
                         EXPECT_TRUE(waiting.get());
                         EXPECT_FALSE(store.holder(key, {}));
                       },
                       [&] {
                         holder = Claim{key, Token::generate(random), ""};
                         EXPECT_TRUE(std::holds_alternative<Granted>(store.acquire({*holder, 1h, {}})));
                         waiting = std::async(std::launch::async, wait,
                                              Claim{key, Token::generate(random), longOwner, share});
                         ASSERT_TRUE(clock->awaitWaiters(1));
                       });
    EXPECT_TRUE(wasTold);
  }
}

}  // namespace
}  // namespace lockkeeper::test
