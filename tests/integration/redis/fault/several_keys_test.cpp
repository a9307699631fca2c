#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <future>
#include <string>
#include <vector>

#include "claimant.h"
#include "forked_child.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using SeveralKeys = RedisFaultTest;

TEST_F(SeveralKeys, TakeOneRoundTrip) {
  LockManager manager(openProxied());
  { const LockSet first = manager.lockAll({"x", "y"}); }  // the server knows the script now
  (void)manager.holder("x");
  proxy.passThrough();
  const LockSet set = manager.lockAll({"a", "b", "c", "d"});
  EXPECT_EQ(proxy.requests(), 1U);
}

TEST_F(SeveralKeys, AReplyThatIsCutAnywhereLeavesAllKeysHeldOrAllFree) {
  LockManager manager(openProxied());
  { const LockSet first = manager.lockAll({"a", "b", "c"}); }
  constexpr std::size_t longestReply = 500;
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < longestReply; ++bytes) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    (void)manager.holder("connects again, and has sent what was posted");
    proxy.cutReplies(bytes, Ending::fin);
    LockSet set;
    bool threw = false;
    try {
      if (auto taken = manager.tryLockAll({"a", "b", "c"})) set = std::move(*taken);
    } catch (const Error&) {
      threw = true;
    }
    const bool hit = proxy.fired() > 0;
    proxy.passThrough();
    if (set) {
      for (const char* const key : {"a", "b", "c"}) ASSERT_FALSE(isFree(key));
      ASSERT_EQ(set.release(), ReleaseResult::released);
    } else {
      ASSERT_TRUE(threw) << "nobody else holds a key";
    }
    ASSERT_TRUE(waitUntil([&] { return isFree("a") && isFree("b") && isFree("c"); }));
    if (!hit) {
      EXPECT_GT(cuts, 20U);
      return;
    }
    ++cuts;
  }
  FAIL() << "the reply never passed whole";
}

TEST_F(SeveralKeys, OfAKilledHolderAreFreeWhenTheirLeaseHasEnded) {
  const int ended = inForkedChild([&] {
    // Without a manager, which has threads: the thread sanitizer allows none in a forked child.
    const auto driver = openRedis(server.port());
    const std::array holders{Claimant{.key = "a"}, Claimant{.key = "b"}, Claimant{.key = "c"}};
    std::vector<AcquireRequest> requests;
    for (const Claimant& each : holders) {
      requests.push_back(each.request());
      requests.back().ttl = 700ms;
    }
    (void)capability<Batchable>(*driver)->acquireInOrder(requests);
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(ended, 128 + SIGKILL);
  EXPECT_FALSE(isFree("b"));
  LockManager manager(direct);
  EXPECT_FALSE(manager.tryLockAll({"b", "z"}));
  EXPECT_TRUE(isFree("z"));
  EXPECT_TRUE(manager.tryLockAll({"a", "b", "c"}, {.waitFor = 1min}));
}

TEST_F(SeveralKeys, WhoWaitsForOneInTheQueueOfTheStoreHoldsThoseBeforeItOnly) {
  LockManager holder(direct);
  LockManager waiter(openProxied());
  Lock second = holder.lock("b");
  auto waiting = std::async(std::launch::async, [&] { return waiter.lockAll({"c", "b", "a"}); });
  ASSERT_TRUE(waitUntil([&] { return !isFree("a") && !isFree("{b}:lockkeeper:queue"); }));
  EXPECT_TRUE(isFree("c"));
  EXPECT_EQ(second.release(), ReleaseResult::released);
  LockSet set = waiting.get();
  EXPECT_TRUE(set.valid());
  EXPECT_FALSE(isFree("c"));
  EXPECT_EQ(set.release(), ReleaseResult::released);
}

TEST_F(SeveralKeys, OfOneKeyThatIsNoStringTheOthersAreGivenBack) {
  LockManager manager(openProxied());
  server.command({"LPUSH", "b", "somebody else's data"});
  EXPECT_FALSE(manager.tryLockAll({"a", "b", "c"}));
  EXPECT_TRUE(waitUntil([&] { return isFree("a"); }));
  EXPECT_TRUE(isFree("c"));
}

}  // namespace
}  // namespace lockkeeper::test
