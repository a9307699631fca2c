#include <Poco/Data/Session.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "getlock/fence_counter.h"
#include "getlock_fixture.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/testing/noted_losses.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using GetLockLostSession = GetLockTest;

/// A resource that remembers the highest fence, as docs/guarantees.md asks for.
class FencedCounter {
 public:
  /// False when a later holder has been here.
  bool write(Fence fence) {
    const std::lock_guard held(mutex_);
    if (fence < highest_) return false;
    if (fence == highest_) ++repeated_;
    highest_ = fence;
    return true;
  }
  int repeated() const { return repeated_; }

 private:
  std::mutex mutex_;
  Fence highest_ = 0;
  int repeated_ = 0;
};

/// Locks are taken again and again by threads of two managers while `fault` strikes.
template <class Fault>
void fencesHoldWhile(GetLockStore& store, int leastFaults, Fault fault) {
  constexpr int threadCount = 4;
  LockManager first(store.open());
  LockManager second(store.open());
  FencedCounter resource;
  std::atomic<bool> stop{false};
  std::atomic<int> grants{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < threadCount; ++i) {
    threads.emplace_back([&, manager = i % 2 == 0 ? &first : &second] {
      while (!stop) {
        try {
          auto lock = manager->tryLock("guarded", {.ttl = 2s, .waitFor = 10s});
          if (!lock) continue;
          resource.write(*lock->fence());
          ++grants;
        } catch (const Error&) {  // Which one is for other tests.
        }
      }
    });
  }
  int faults = 0;
  while (faults < leastFaults) {
    const int before = grants;
    ASSERT_TRUE(waitUntil([&] { return grants >= before + 5; })) << "it works again after each fault";
    faults += fault();
  }
  const int before = grants;
  EXPECT_TRUE(waitUntil([&] { return grants >= before + 5; }));
  stop = true;
  threads.clear();
  EXPECT_EQ(resource.repeated(), 0) << "no fence is given twice";
}

TEST_P(GetLockLostSession, KilledSessionsNeverYieldAFenceTwice) {
  fencesHoldWhile(store, 50, [&] { return store.server.killSessions(); });
}

TEST_P(GetLockLostSession, ServersThatDieNeverYieldAFenceTwice) {
  fencesHoldWhile(store, 2, [&] {
    store.server.restart();
    return 1;
  });
}

TEST_P(GetLockLostSession, ADeadServerIsUnavailableUntilItIsBack) {
  LockManager manager(store.direct);
  Lock before = manager.lock("survivor", {.ttl = 3s});
  store.server.kill();
  EXPECT_THROW((void)manager.tryLock("other"), Error);
  EXPECT_TRUE(waitUntil([&] { return before.lost().stop_requested(); })) << "the server has forgotten it";
  store.server.restart();
  const Lock after = manager.lock("survivor", {.waitFor = 30s});
  EXPECT_GT(*after.fence(), *before.fence());
}

TEST_P(GetLockLostSession, ALostSessionCostsOnlyItsOwnLocks) {
  const auto driver = store.open("connections=2");
  const Claimant first{};
  const Claimant second{};
  ASSERT_TRUE(granted(driver->acquire(requestFor(first, 10s))));
  ASSERT_TRUE(granted(driver->acquire(requestFor(second, 20s)))) << "on a session of its own";
  store.server.execute("KILL " + store.ask("SELECT IS_USED_LOCK('" + first.key + "')"));
  EXPECT_EQ(renew(*driver, first, 10s), RenewOutcome::notOwner);
  EXPECT_EQ(renew(*driver, second, 20s), RenewOutcome::renewed);
}

TEST_P(GetLockLostSession, ALockThatEndsWhileItsFenceIsDrawnIsNotGranted) {
  const auto driver = store.open("connections=1");
  const Claimant other{};
  ASSERT_TRUE(granted(driver->acquire(other.request())));
  // Its session holds another lock, so that its fences are drawn elsewhere.
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  ASSERT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  Poco::Data::Session blocker("MySQL", store.server.connectionString(store.database), 10);
  blocker.begin();
  blocker << "UPDATE lockkeeper_fences SET owner = 'x'", Poco::Data::Keywords::now;

  auto claim = std::async(std::launch::async, [&] { return driver->acquire(who.request()); });
  EXPECT_TRUE(waitUntil([&] {
    return store.server.ask(
               "SELECT COUNT(*) FROM information_schema.processlist"
               " WHERE info LIKE 'INSERT INTO lockkeeper_fences%'") == "1";
  }));
  store.server.execute("KILL " + store.ask("SELECT IS_USED_LOCK('" + other.key + "')"));
  EXPECT_EQ(renew(*driver, other), RenewOutcome::notOwner) << "now the driver knows";
  blocker.rollback();
  EXPECT_THROW((void)claim.get(), Error);
}

TEST_P(GetLockLostSession, EachManagerOfADriverHearsOfAllLosses) {
  const auto driver = store.open("connections=1");
  const auto first = std::make_shared<lockkeeper::testing::NotedLosses>();
  const auto second = std::make_shared<lockkeeper::testing::NotedLosses>();
  for (const auto& each : {first, second}) capability<LossReporting>(*driver)->addLossListener(each);
  const std::vector<Claimant> held(20);
  for (const Claimant& each : held) ASSERT_TRUE(granted(driver->acquire(requestFor(each, 10s))));
  store.server.execute("KILL " + store.ask("SELECT IS_USED_LOCK('" + held.front().key + "')"));
  EXPECT_EQ(renew(*driver, held.front(), 10s), RenewOutcome::notOwner);
  for (const auto& each : {first, second}) EXPECT_EQ(each->noted().size(), held.size());
}

TEST_P(GetLockLostSession, NobodyIsWaitedForWhenThereIsNoSessionToRenewOn) {
  const Claimant who{};
  ASSERT_TRUE(granted(store.direct->acquire(requestFor(who, 10s))));
  store.server.execute("KILL " + store.ask("SELECT IS_USED_LOCK('" + who.key + "')"));
  ASSERT_TRUE(waitUntil([&] { return store.isFree(who.key); }));
  const Instant deadline = soon();
  EXPECT_EQ(renew(*store.direct, who, 10s, deadline), RenewOutcome::notOwner);
  EXPECT_EQ(renew(*store.direct, Claimant{}, 10s, deadline), RenewOutcome::notOwner) << "never held";
  EXPECT_LT(now(), deadline);
}

TEST_P(GetLockLostSession, FencesWithoutALockIncreaseAndAreTheSameCounters) {
  StoreUri uri =
      StoreUri::parse("mysql://shop:p%40ss%2Fword@127.0.0.1:" + std::to_string(store.server.port()) + "/" +
                      store.database + "?createTable=true");
  mysql::FenceCounter counter(uri, {});
  const Claimant who{.key = "counted"};
  EXPECT_EQ(counter.last(who.key, soon()), std::nullopt);
  const Fence first = counter.next(who.claim(), false, soon());
  EXPECT_EQ(counter.next(who.claim(), true, soon()), first) << "a claim that is sent again";
  const Claimant other{.key = "counted"};
  EXPECT_EQ(counter.next(other.claim(), true, soon()), first + 1) << "somebody else's is new";
  EXPECT_EQ(counter.last(who.key, soon()), first + 1);
  const AcquireResult grant = store.direct->acquire(who.request());
  ASSERT_TRUE(granted(grant));
  EXPECT_EQ(*std::get<Granted>(grant).fence, first + 2);
  store.server.restart();
  EXPECT_TRUE(waitUntil([&] {
    try {
      return counter.next(other.claim(), false, soon()) > first + 2;
    } catch (const Error&) {
      return false;
    }
  }));
}

TEST_P(GetLockLostSession, APurgedCounterGoesOnAbove) {
  const Claimant who{};
  const AcquireResult before = store.direct->acquire(who.request());
  ASSERT_TRUE(granted(before));
  ASSERT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
  store.server.execute("DELETE FROM " + store.database + ".lockkeeper_fences");
  const AcquireResult after = store.direct->acquire(who.request());
  ASSERT_TRUE(granted(after));
  EXPECT_GT(*std::get<Granted>(after).fence, *std::get<Granted>(before).fence);
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockLostSession, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
