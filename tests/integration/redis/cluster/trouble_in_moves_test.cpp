// What goes on beside a slot that is on its way: no trouble of its own becomes one of others.

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "cluster_fixture.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/rate_policy.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Such a node answers no script as long as this lives, and goes on talking to the others.
class HeldNode {
 public:
  explicit HeldNode(RedisServer& node) : node_(node) {
    EXPECT_EQ(node_.command({"CLIENT", "PAUSE", "60000", "WRITE"}), "OK");
  }
  HeldNode(const HeldNode&) = delete;
  HeldNode& operator=(const HeldNode&) = delete;
  ~HeldNode() { EXPECT_EQ(node_.command({"CLIENT", "UNPAUSE"}), "OK"); }

 private:
  RedisServer& node_;
};

TEST_F(MovedSlot, ReplicasAreCountedWhereverTheLockIs) {
  const auto careful = open("minReplicas=1");
  const Claimant other = claimOf(newKey(from));
  ASSERT_TRUE(granted(careful->acquire(who.request())));
  ASSERT_TRUE(granted(careful->acquire(other.request())));
  const auto renewBoth = [&] {
    std::vector<Renewal> renewals{{.claim = who.claim(), .ttl = longTtl},
                                  {.claim = other.claim(), .ttl = longTtl}};
    careful->renew(renewals, soon());
    for (const Renewal& each : renewals) EXPECT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
  };
  beginMove();
  renewBoth();
  moveLock();
  renewBoth();
  endMove();
  renewBoth();
}

TEST_F(MovedSlot, ARenewalIsToldBeforeAnotherOneIsRedirected) {
  const auto patient = open("ioTimeout=20s");
  const Claimant other = claimOf(newKey(from));
  ASSERT_TRUE(granted(patient->acquire(who.request())));
  ASSERT_TRUE(granted(patient->acquire(other.request())));
  beginMove();
  moveLock();
  std::atomic<bool> told = false;
  std::vector<Renewal> renewals{{.claim = who.claim(), .ttl = longTtl},
                                {.claim = other.claim(), .ttl = longTtl}};
  renewals[1].told = [&](const Renewal& each) {
    EXPECT_EQ(each.outcome, RenewOutcome::renewed);
    told = true;
  };
  std::jthread renewer;
  {
    const HeldNode held(cluster().node(to));
    renewer = std::jthread([&] { patient->renew(renewals, soon()); });
    EXPECT_TRUE(waitUntil([&] { return told.load(); }, 4s)) << "it waits for the one that is redirected";
  }
  renewer.join();
  EXPECT_EQ(renewals[0].outcome, RenewOutcome::renewed) << renewals[0].cause;
  endMove();
}

TEST_F(MovedSlot, LimitsThatMeetByChanceAreEachServed) {
  const RatePolicy policy = RatePolicy("p", {.rate = Rate::parse("rate", "1/day"), .burst = 1000});
  auto* const rates = capability<RateDriver>(*driver);
  const auto take = [&](const std::string& limit) {
    const std::string tagged = "{" + key + "}" + limit;
    RateCharge charge{.key = tagged, .law = &policy.law()};
    rates->take({&charge, 1}, soon());
    return charge.outcome.remaining;
  };
  EXPECT_EQ(take("a"), 999);
  beginMove();
  constexpr int callers = 8;
  constexpr int calls = 100;
  {
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < callers; ++caller) {
      threads.emplace_back([&, caller] {
        for (int call = 0; call < calls; ++call) EXPECT_NO_THROW(take((caller + call) % 2 == 0 ? "a" : "b"));
      });
    }
  }
  endMove();
  EXPECT_EQ(take("a"), 998 - callers * calls / 2) << "each was charged once";
  EXPECT_EQ(take("b"), 999 - callers * calls / 2);
}

TEST_F(MovedSlot, AWaiterThatIsPassedOverWhileItFollowsComesBackToItsPlace) {
  LockManager holders(driver);
  std::optional<Lock> held = holders.lock(key);
  const std::string entries = "{" + key + "}:lockkeeper:waiters";
  const std::unique_ptr<Waiters> waiters = waitInOrder(2, *held->fence());
  beginMove();
  moveLock();
  // Nobody's look finds all keys at one node now. What is done to those who cannot be reached:
  const std::string first = cluster().node(from).command({"ZRANGE", queue, "0", "0"});
  const std::string value = first.substr(0, first.find('\n'));
  EXPECT_EQ(cluster().node(from).command({"ZREM", queue, value}), "1");
  EXPECT_EQ(cluster().node(from).command({"HDEL", entries, value}), "1");
  endMove();
  EXPECT_TRUE(waitUntil([&] { return cluster().node(to).command({"ZCARD", queue}) == "2"; }));
  EXPECT_TRUE(waitUntil([&] {
    const std::string all = cluster().node(to).command({"HVALS", entries});
    return all.find('{') != all.rfind('{');
  })) << "both can be reached again";
  held.reset();
  EXPECT_EQ(waiters->served(), (std::vector{0, 1}));
}

TEST_F(MovedSlot, AWaiterThatCannotFollowMayStillBeInTheQueue) {
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const auto waiters = open();
  auto wait = std::async(std::launch::async, [&] {
    return capability<Waitable>(*waiters)->acquireWaiting(claimOf(key).request(), 60s, {});
  });
  ASSERT_TRUE(waitUntil([&] { return cluster().node(from).command({"ZCARD", queue}) == "1"; }));
  beginMove();
  cluster().moveAllKeys(slot, from, to);
  RedisServer& next = cluster().node(to);
  EXPECT_EQ(next.command({"CONFIG", "SET", "min-replicas-to-write", "9"}), "OK");
  cluster().endMove(slot, to);
  EXPECT_THROW((void)wait.get(), OutcomeUnknown);
  EXPECT_EQ(next.command({"CONFIG", "SET", "min-replicas-to-write", "0"}), "OK");
}

TEST_F(MovedSlot, AReshardMakesTheMapBeReadTwiceASecondAtMostAndLeavesNoDoubt) {
  constexpr std::size_t moves = 40;
  (void)driver->holder(key, soon());
  std::map<std::uint16_t, std::string> keys;  // by slot
  while (keys.size() < moves) {
    const std::string each = newKey(from);
    keys[RedisCluster::slotOf(each)] = each;
  }
  const auto doubts = DoubtCount::of(*driver);
  const std::size_t before = looksAtTheMap();
  const auto began = now();
  for (const auto& [each, itsKey] : keys) {
    cluster().move(each, from, to);
    EXPECT_FALSE(driver->holder(itsKey, soon()));
  }
  const auto length = std::chrono::duration_cast<std::chrono::milliseconds>(now() - began);
  EXPECT_LE(looksAtTheMap() - before, 3 * static_cast<std::size_t>(length / 500ms + 1))
      << length.count() << " ms " << before;
  EXPECT_EQ(doubts->value, 0) << "the keys have come along";
}

}  // namespace
}  // namespace lockkeeper::test
