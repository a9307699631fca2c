// What the dead, other programs or a clock leave in the keys of a lock that is shared.

#include <future>
#include <stop_token>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/permit/share.h"
#include "lockkeeper/permit/upgradeable_lock.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* queueKey = "{k}:lockkeeper:queue";
constexpr const char* waitersKey = "{k}:lockkeeper:waiters";

class ShareRepair : public RedisFaultTest {
 protected:
  static Claimant sharer(Share share) {
    Claimant who;
    who.key = "k";
    who.share = share;
    return who;
  }
  static std::string valueOf(const Claimant& who) {
    return who.token.hex() + "@test:1@" + std::to_string(who.share->weight) + "/" +
           std::to_string(who.share->limit);
  }
  /// One who is in front of the queue, and should look in `looksIn` ms.
  void putInFront(const std::string& value, std::int64_t looksIn, const std::string& channel) const {
    ASSERT_EQ(server.command({"ZADD", queueKey, "1", value}), "1");
    ASSERT_EQ(server.command({"HSET", waitersKey, value,
                              std::to_string(serverTime() + looksIn) + " 1 1000 0 " + channel}),
              "1");
  }
  std::int64_t serverTime() const {
    return std::stoll(server.command({"EVAL",
                                      "local time = redis.call('TIME') "
                                      "return time[1] * 1000 + math.floor(time[2] / 1000)",
                                      "0"}));
  }
  std::future<AcquireResult> wait(const Claimant& who) const {
    return std::async(std::launch::async, [this, who] {
      return capability<Waitable>(*direct)->acquireWaiting(who.request(), 3s, {});
    });
  }
  bool queued(const std::string& count) const {
    return waitUntil([&] { return server.command({"ZCARD", queueKey}) == count; });
  }

  const std::string dead = std::string(32, 'a') + "@dead:1";
};

TEST_F(ShareRepair, ATryIsNotRefusedForTheSakeOfTheDead) {
  for (const bool isHeld : {false, true}) {
    SCOPED_TRACE(isHeld ? "beside a reader" : "of a free key");
    if (isHeld) {
      ASSERT_TRUE(granted(direct->acquire(sharer({1, 3}).request())));
    }
    for (const char* each : {"@1", "@2"}) putInFront(dead + each, 4000, "lockkeeper:gone");
    EXPECT_TRUE(granted(direct->acquire(sharer({1, 3}).request())));
    EXPECT_TRUE(isFree(queueKey) && isFree(waitersKey));
    server.command({"DEL", "k"});
  }
}

TEST_F(ShareRepair, ATryDoesNotPassOverTheLivingBehindTheDead) {
  const Claimant reader = sharer({1, 3});
  ASSERT_TRUE(granted(direct->acquire(reader.request())));
  const Claimant most = sharer({3, 3});
  auto waiting = wait(most);
  ASSERT_TRUE(queued("1"));
  putInFront(dead + "@3/3", 4000, "lockkeeper:gone");
  EXPECT_FALSE(granted(direct->acquire(sharer({1, 3}).request())));
  EXPECT_EQ(server.command({"ZRANGE", queueKey, "0", "-1"}), server.command({"ZRANGE", queueKey, "0", "0"}));
  EXPECT_EQ(direct->release(reader.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(granted(waiting.get()));
}

TEST_F(ShareRepair, ADeadWaiterThatDoesNotFitHoldsUpNobodyBehindIt) {
  ASSERT_TRUE(granted(direct->acquire(sharer({1, 3}).request())));
  putInFront(dead + "@3/3", 4000, "lockkeeper:gone");
  EXPECT_TRUE(granted(wait(sharer({1, 3})).get()));
  EXPECT_TRUE(isFree(queueKey) && isFree(waitersKey));
}

TEST_F(ShareRepair, AWaiterFromBeforeTheClockWasSetBackIsToLookAsOthersAre) {
  ASSERT_TRUE(granted(direct->acquire(sharer({1, 3}).request())));
  const std::string polling = dead + "@3/3";
  putInFront(polling, 3'600'000, "");  // not known to be dead
  EXPECT_FALSE(granted(direct->acquire(sharer({1, 3}).request())));
  EXPECT_LE(std::stoll(server.command({"HGET", waitersKey, polling})) - serverTime(), 4000);
}

TEST_F(ShareRepair, TenThousandLeasesThatEndTogetherTakeFewCommands) {
  ASSERT_TRUE(granted(direct->acquire(sharer({1, 10'000}).request())));
  server.command({"EVAL",
                  "for number = 1, 9999 do redis.call('ZADD', KEYS[1], 1000000000000 + number, "
                  "string.format('%032x@dead:1@1/10000', number)) end "
                  "return redis.call('ZINCRBY', KEYS[1], 9999, 'permits')",
                  "1", "k"});
  server.command({"CONFIG", "RESETSTAT"});
  EXPECT_TRUE(granted(direct->acquire(sharer({9'999, 10'000}).request())));
  EXPECT_EQ(server.command({"ZCARD", "k"}), "3");
  const std::string stats = server.command({"INFO", "commandstats"});
  const std::string removals = "cmdstat_zrem:calls=";
  const auto found = stats.find(removals);
  ASSERT_NE(found, std::string::npos);
  EXPECT_LT(std::stoi(stats.substr(found + removals.size())), 20);
}

TEST_F(ShareRepair, AClaimThatComesLateTakesNoPermitBesideTheOneFromTheQueue) {
  const Claimant all = sharer({3, 3});
  const Claimant late = sharer({1, 3});
  ASSERT_TRUE(granted(direct->acquire(all.request())));
  auto waiting = wait(late);
  ASSERT_TRUE(queued("1"));
  EXPECT_EQ(direct->release(all.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(granted(direct->acquire(late.request())));
  EXPECT_TRUE(granted(waiting.get()));
  EXPECT_TRUE(granted(direct->acquire(sharer({2, 3}).request())));
  EXPECT_FALSE(granted(direct->acquire(sharer({1, 3}).request())));
  EXPECT_EQ(direct->release(late.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(granted(direct->acquire(sharer({1, 3}).request())));
}

TEST_F(ShareRepair, AMemberOfSomebodyElseTakesNothingAndCanBeBroken) {
  const Claimant reader = sharer({1, 3});
  ASSERT_TRUE(granted(direct->acquire(reader.request())));
  ASSERT_EQ(server.command({"ZADD", "k", "4000000", "ended", "inf", "endless"}), "2");
  const Claimant another = sharer({2, 3});
  EXPECT_TRUE(granted(direct->acquire(another.request())));
  Renewal renewal{.claim = reader.claim(), .ttl = longTtl};
  direct->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed) << renewal.cause;
  auto& permits = *capability<Permits>(*direct);
  EXPECT_EQ(permits.shareHolders("k", soon()).size(), 2U);
  EXPECT_TRUE(permits.resize("k", 3, soon()));
  EXPECT_EQ(direct->release(another.claim(), soon()), ReleaseOutcome::released);
  const auto shown = direct->holder("k", soon());
  ASSERT_TRUE(shown);
  EXPECT_TRUE(capability<Breakable>(*direct)->breakLock("k", soon(), &*shown));
  EXPECT_EQ(server.command({"ZCARD", "k"}), "2") << "the reader is left";
  EXPECT_EQ(direct->release(reader.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(isFree("k"));
}

TEST_F(ShareRepair, WhoHasItsShareLeavesItsPlaceInTheQueueToWhoIsBehind) {
  const Claimant first = sharer({1, 2});
  ASSERT_TRUE(granted(direct->acquire(first.request())));
  ASSERT_TRUE(granted(direct->acquire(sharer({1, 2}).request())));
  putInFront(valueOf(first), 4000, "");
  const Claimant behind = sharer({2, 2});
  auto waiting = wait(behind);
  EXPECT_TRUE(waitUntil([&] {
    return server.command({"ZRANGE", queueKey, "0", "-1"}) == valueOf(behind) + "\n";
  }));
  EXPECT_EQ(direct->release(first.claim(), soon()), ReleaseOutcome::released);
  server.command({"DEL", "k"});
  EXPECT_TRUE(granted(waiting.get()));
}

TEST_F(ShareRepair, AnUpgradeThatDiesWhileItWaitsHoldsUpNobodyForLong) {
  LockManager manager(direct);
  LockManager other(openRedis(server.port()));
  const Claimant reads = sharer(upgradeableShare);
  AcquireRequest request = reads.request();
  request.ttl = 1s;
  ASSERT_TRUE(granted(direct->acquire(request)));
  auto reader = other.lockShared("k");
  const std::string rest = dead + "@499999/1000000";
  ASSERT_EQ(server.command({"ZADD", queueKey, "0", rest}), "1");
  ASSERT_EQ(server.command({"HSET", waitersKey, rest, std::to_string(serverTime()) + " 1 1000 0 "}), "1");
  const Instant began = now();
  EXPECT_TRUE(manager.tryLockShared("k", {.waitFor = 20s}));
  EXPECT_LT(now() - began, 10s);
}

}  // namespace
}  // namespace lockkeeper::test
