// A grant of several turns, which the holder's process hands on by itself until somebody else waits.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"
#include "queue_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t asked = 8;

class Turns : public RedisQueueTest {
 protected:
  static Granted take(LockDriver& driver, const Claimant& who, bool resend = false) {
    AcquireRequest request = who.request(soon(), resend);
    request.localHolders = asked;
    return std::get<Granted>(driver.acquire(request));
  }

  /// Who holds "k" for several turns. Others are reported to its process, and that does not end by itself.
  Granted takeWatched(LockDriver& driver, const Claimant& who) {
    Granted granted{};
    EXPECT_TRUE(waitUntil([&] {
      granted = take(driver, who);
      if (granted.handOverFor > 0ns && server.command({"PERSIST", waitersKey}) == "1") return true;
      (void)driver.release(who.claim(), soon());
      return false;
    }));
    return granted;
  }

  Claimant holder{.key = "k"};
  Claimant next{.key = "k"};
};

TEST_F(Turns, FencesAreReservedInOneStepAndNotAheadOfTheClock) {
  Granted granted{};
  ASSERT_TRUE(waitUntil([&] {  // the first ones of a second have one turn
    granted = take(*direct, holder);
    (void)direct->release(holder.claim(), soon());
    return granted.localHolders == asked;
  }));
  EXPECT_EQ(counter(), *granted.fence + asked - 1);

  const std::uint64_t ahead = *granted.fence + std::uint64_t{3'600'000'000};
  server.command({"SET", "{k}:lockkeeper:fence", std::to_string(ahead)});
  granted = take(*direct, holder);
  EXPECT_EQ(granted.localHolders, 1U);
  EXPECT_EQ(*granted.fence, ahead + 1);
}

TEST_F(Turns, AClaimThatIsSentAgainHasTheLastFenceAndOneTurn) {
  const Granted first = take(*direct, holder);
  const Granted again = take(*direct, holder, true);
  EXPECT_EQ(again.localHolders, 1U);
  EXPECT_EQ(*again.fence, *first.fence + first.localHolders - 1);
  EXPECT_EQ(counter(), *again.fence);
}

TEST_F(Turns, AClaimThatIsFoundWithoutItsCounterHasOneTurn) {
  for (int round = 0; round < 20; ++round) {
    const Granted first = take(*direct, holder);
    server.command({"DEL", "{k}:lockkeeper:fence"});
    const Granted again = take(*direct, holder);
    EXPECT_EQ(again.localHolders, 1U);
    EXPECT_GT(*again.fence, *first.fence);
    EXPECT_EQ(counter(), *again.fence);
    ASSERT_EQ(direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  }
}

TEST_F(Turns, ThereIsOneWhileSomebodyWaitsInTheQueue) {
  server.command({"ZADD", queueKey, "1", "somebody"});
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(take(*direct, holder).localHolders, 1U);
    server.command({"DEL", "k"});
  }
  EXPECT_EQ(server.command({"EXISTS", waitersKey}), "0");
}

TEST_F(Turns, ThereIsOneWhereNoWaiterCanBeReported) {
  takeWatched(*direct, holder);
  direct->release(holder.claim(), soon());
  server.command({"SET", waitersKey, "somebody else's"});
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(take(*direct, holder).localHolders, 1U);
    direct->release(holder.claim(), soon());
  }
}

TEST_F(Turns, WhoBeginsToWaitIsReportedToTheProcessThatHandsOn) {
  auto& reports = *capability<Waitable>(*direct);
  const Granted granted = takeWatched(*direct, holder);
  EXPECT_FALSE(reports.waitersReportedSince(granted.leasedFrom));
  Member waiter = wait();
  ASSERT_TRUE(queued(1));
  EXPECT_TRUE(waitUntil([&] { return reports.waitersReportedSince(granted.leasedFrom); }));
  EXPECT_EQ(server.command({"HEXISTS", waitersKey, "stay"}), "0") << "once is enough";
  EXPECT_EQ(direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  const auto lock = waiter.take();
  ASSERT_TRUE(lock);
  EXPECT_GT(*lock->fence(), *granted.fence + granted.localHolders - 1);
  EXPECT_FALSE(reports.waitersReportedSince(now()));
}

TEST_F(Turns, TheMarkForThoseReportsDoesNotOutliveThem) {
  const Granted granted = takeWatched(*direct, holder);
  EXPECT_LE(granted.handOverFor, 100ms);
  EXPECT_EQ(direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  server.command({"DEL", waitersKey});
  take(*direct, holder);
  EXPECT_TRUE(waitUntil([&] { return server.command({"EXISTS", waitersKey}) == "0"; }));
}

TEST_F(Turns, AProcessHandsTheLockOnWithoutCommands) {
  constexpr int threads = 4;
  constexpr int rounds = 2000;
  LockManager manager(direct);
  { const Lock warm = manager.lock("k"); }
  server.command({"CONFIG", "RESETSTAT"});
  std::atomic<Fence> last{0};
  std::atomic<int> faults{0};
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          const Lock lock = manager.lock("k", {.waitFor = 1min});
          if (last.exchange(*lock.fence()) >= *lock.fence()) ++faults;
        }
      });
    }
  }
  EXPECT_EQ(faults, 0);
  const std::string stats = server.command({"INFO", "commandstats"});
  const std::size_t at = stats.find("cmdstat_evalsha:calls=");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::stoi(stats.substr(at + 22)), threads * rounds) << "two for each without it";
}

}  // namespace
}  // namespace lockkeeper::test
