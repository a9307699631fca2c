#include <future>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/permit/share.h"
#include "lockkeeper/permit/upgradeable_lock.h"
#include "redis_fixture.h"
#include "upgrade_threads.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class Upgrade : public RedisFaultTest {
 protected:
  bool queued(int count) const {
    return waitUntil([&] {
      return server.command({"ZCARD", "{k}:lockkeeper:queue"}) == std::to_string(count);
    });
  }

  LockManager manager{direct};
  LockManager other{openRedis(server.port())};
};

TEST_F(Upgrade, NobodyReadsOrWritesBesideAWriterThatWasAReader) {
  constexpr int rounds = 40;
  const NumbersSeen seen = upgradeReadAndWrite(manager, other, "k", rounds);
  EXPECT_EQ(seen.mistakes, 0);
  EXPECT_EQ(seen.writes, 4 * rounds);
  EXPECT_TRUE(waitUntil([&] { return isFree("k"); }));
}

TEST_F(Upgrade, IsAheadOfAllWhoWaitAndHasANewFence) {
  auto held = UpgradeableLock::lock(manager, "k");
  const auto before = held.fence();
  auto reader = other.lockShared("k");
  auto writing = std::async(std::launch::async, [&] { return other.lock("k"); });
  ASSERT_TRUE(queued(1));
  auto upgrading = std::async(std::launch::async, [&] { return held.tryUpgrade(20s); });
  ASSERT_TRUE(queued(2));
  EXPECT_FALSE(other.tryLockShared("k"));
  reader.release();
  EXPECT_TRUE(upgrading.get());
  const auto asWriter = held.fence();
  ASSERT_TRUE(before && asWriter);
  EXPECT_GT(*asWriter, *before);
  EXPECT_TRUE(queued(1));
  EXPECT_EQ(held.release(), ReleaseResult::released);
  const Lock next = writing.get();
  EXPECT_TRUE(next.valid());
  EXPECT_GT(next.fence(), asWriter);
}

TEST_F(Upgrade, OneThatDiesWhileItWaitsHoldsUpNobodyForLong) {
  Claimant dead;
  dead.key = "k";
  dead.share = upgradeableShare;
  AcquireRequest request = dead.request();
  request.ttl = 1s;
  ASSERT_TRUE(granted(direct->acquire(request)));
  auto reader = other.lockShared("k");
  const std::string rest = std::string(32, 'a') + "@dead:1@499999/1000000";
  ASSERT_EQ(server.command({"ZADD", "{k}:lockkeeper:queue", "0", rest}), "1");
  const std::string looks = std::to_string(std::stoll(server.command({"TIME"})) * 1000);
  ASSERT_EQ(server.command({"HSET", "{k}:lockkeeper:waiters", rest, looks + " 1 1000 0 "}), "1");
  const Instant began = now();
  EXPECT_TRUE(manager.tryLockShared("k", {.waitFor = 20s}));
  EXPECT_LT(now() - began, 10s);
}

}  // namespace
}  // namespace lockkeeper::test
