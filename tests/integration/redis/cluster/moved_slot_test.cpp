// A slot goes to another node while its locks are held and waited for, and its other data is used.

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "advanced_clock.h"
#include "cluster_fixture.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/store/shared_records.h"
#include "lockkeeper/store/value_store.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

TEST_F(MovedSlot, AHeldLockIsRenewedAndFoundBeforeDuringAndAfter) {
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const auto isHeld = [&] {
    const auto holder = driver->holder(key, soon());
    return renew(*driver, who) == RenewOutcome::renewed && holder && holder->owner == "test:1";
  };
  EXPECT_TRUE(isHeld());
  beginMove();
  EXPECT_TRUE(isHeld()) << "the slot is on its way, the lock still there";
  moveLock();
  EXPECT_TRUE(isHeld()) << "the lock has gone ahead of its slot";
  endMove();
  EXPECT_TRUE(isHeld()) << "the slot has arrived";
  Claimant other{};
  other.key = key;
  EXPECT_FALSE(granted(driver->acquire(other.request())));
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(masterOf(key), to);
}

TEST_F(MovedSlot, ALockIsReleasedWhereverItIsMeanwhile) {
  Claimant stranger{};
  stranger.key = key;
  for (const bool gone : {false, true}) {
    ASSERT_TRUE(granted(driver->acquire(who.request())));
    beginMove();
    if (gone) moveLock();
    EXPECT_THROW((void)driver->release(stranger.claim(), soon()), OutcomeUnknown) << "it may be in the queue";
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released) << gone;
    EXPECT_FALSE(driver->holder(key, soon())) << gone;
    endMove();
    cluster().move(slot, to, from);
  }
}

TEST_F(MovedSlot, AShareIsReleasedWhereverItIsMeanwhile) {
  who.share = Share{.weight = 2, .limit = 3};
  for (const bool gone : {false, true}) {
    ASSERT_TRUE(granted(driver->acquire(who.request())));
    beginMove();
    if (gone) moveLock();
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released) << gone;
    EXPECT_FALSE(driver->holder(key, soon())) << gone;
    endMove();
    cluster().move(slot, to, from);
  }
}

TEST_F(MovedSlot, ALockIsNotTakenTwiceWhileItsSlotIsOnItsWay) {
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  beginMove();
  moveLock();
  Claimant other{};
  other.key = key;
  try {
    EXPECT_FALSE(granted(driver->acquire(other.request())));
  } catch (const StoreUnavailable& error) {
    EXPECT_NE(std::string(error.what()).find("on its way"), std::string::npos) << error.what();
  }
  endMove();
  EXPECT_FALSE(granted(driver->acquire(other.request())));
}

TEST_F(MovedSlot, SharesGoAlongAndAreNeverMoreThanTheKeyHas) {
  auto& permits = *capability<Permits>(*driver);
  const auto sharer = [&] {
    Claimant made = claimOf(key);
    made.share = Share{.weight = 1, .limit = 3};
    return made;
  };
  const std::vector held{sharer(), sharer(), sharer()};
  for (const Claimant& each : held) ASSERT_TRUE(granted(driver->acquire(each.request())));
  const auto areKept = [&] {
    for (const Claimant& each : held) {
      if (renew(*driver, each) != RenewOutcome::renewed) return false;
    }
    return permits.shareHolders(key, soon()).size() == held.size();
  };
  const auto isGranted = [&](const Claimant& claimant) {
    try {
      return granted(driver->acquire(claimant.request()));
    } catch (const StoreUnavailable&) {
      return false;  // the slot is on its way
    }
  };
  EXPECT_TRUE(areKept());
  beginMove();
  EXPECT_TRUE(areKept());
  EXPECT_FALSE(isGranted(sharer()));
  moveLock();
  EXPECT_TRUE(areKept()) << "the key has gone ahead of its slot";
  EXPECT_FALSE(isGranted(sharer()));
  EXPECT_FALSE(isGranted(who));
  endMove();
  EXPECT_TRUE(areKept());
  EXPECT_FALSE(isGranted(sharer()));
  EXPECT_EQ(driver->release(held[0].claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(isGranted(sharer()));
  EXPECT_FALSE(isGranted(sharer()));
}

TEST_F(MovedSlot, WhoWaitsMovesWithTheLockAndKeepsItsPlace) {
  LockManager holders(driver);
  std::optional<Lock> held = holders.lock(key);
  const std::unique_ptr<Waiters> waiters = waitInOrder(3, *held->fence());
  beginMove();
  moveLock();
  endMove();
  // Who has not followed yet cannot be reached, and is passed over once.
  const auto haveFollowed = [&] {
    std::istringstream channels(cluster().node(to).command({"PUBSUB", "SHARDCHANNELS"}));
    const std::string entries = cluster().node(to).command({"HVALS", "{" + key + "}:lockkeeper:waiters"});
    std::size_t count = 0;
    for (std::string channel; std::getline(channels, channel);)
      count += entries.find(channel) != std::string::npos;
    return count == 3;
  };
  EXPECT_TRUE(waitUntil(haveFollowed));
  held.reset();
  EXPECT_EQ(waiters->served(), (std::vector{0, 1, 2})) << "first come, first served, on both nodes";
}

TEST_F(MovedSlot, AWaitIsOneCallWhereverTheLockGoes) {
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const Claimant next = claimOf(key);
  const auto waiters = open();
  auto wait = std::async(std::launch::async, [&] {
    return capability<Waitable>(*waiters)->acquireWaiting(next.request(), 60s, {});
  });
  ASSERT_TRUE(waitUntil([&] { return cluster().node(from).command({"ZCARD", queue}) == "1"; }));
  const auto refused = [&] { return cluster().node(from).command({"INFO", "errorstats"}); };
  beginMove();
  moveLock();
  // The first one in the queue looks four times a second.
  EXPECT_TRUE(waitUntil([&, before = refused()] { return refused() != before; }));
  endMove();
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(granted(wait.get()));
}

TEST_F(MovedSlot, AWaiterIsWokenUpByMessagesOfItsSlotOnly) {
  LockManager holders(driver);
  LockManager waiters(open());
  const auto turn = [&](std::size_t master) {
    std::optional<Lock> held = holders.lock(key);
    std::jthread waiter([&] { (void)waiters.lock(key, {.waitFor = 60s}); });
    const auto subscribed = [&] {
      return cluster().node(master).command({"PUBSUB", "SHARDCHANNELS"}).find("lockkeeper:") !=
             std::string::npos;
    };
    EXPECT_TRUE(waitUntil(subscribed));
    // The entry of the one who waits, with its channel.
    const std::string entries = "{" + key + "}:lockkeeper:waiters";
    EXPECT_TRUE(waitUntil([&] {
      return cluster().node(master).command({"HVALS", entries}).find("lockkeeper:") != std::string::npos;
    }));
    held.reset();
  };
  turn(from);
  cluster().move(slot, from, to);
  turn(to);
  for (std::size_t node = 0; node < 3; ++node) {
    EXPECT_EQ(cluster().node(node).command({"CLUSTER", "INFO"}).find("messages_publish_"), std::string::npos)
        << "a wake-up was published to all nodes";
  }
}

TEST_F(MovedSlot, LimitsValuesAndRecordsGoAlong) {
  StoreRegistry registry;
  redis::use(registry);
  const auto values = registry.openValues(cluster().uri());
  auto* const rates = capability<RateDriver>(*driver);
  auto* const records = capability<SharedRecords>(*driver);
  const RatePolicy policy = RatePolicy("p", {.rate = Rate::parse("rate", "100/day"), .burst = 100});
  const std::string tagged = "{" + key + "}";  // of the same slot
  const auto remaining = [&] {
    RateCharge charge{.key = tagged, .law = &policy.law()};
    rates->take({&charge, 1}, soon());
    return charge.outcome.remaining;
  };
  const auto useAll = [&](const std::string& round, std::int64_t expected) {
    EXPECT_EQ(remaining(), expected) << round;
    values->put(tagged, round, 1min, soon());
    EXPECT_EQ(values->get(tagged, soon()), round);
    EXPECT_TRUE(records->replace(tagged, round, std::nullopt, "text", {}, soon())) << round;
    EXPECT_EQ(records->read(tagged, soon()).size(), 100U - static_cast<std::size_t>(expected)) << round;
  };
  useAll("before", 99);
  const std::string later = tagged + "later";
  std::stop_source stop;
  auto told = std::async(std::launch::async, [&] {
    return values->await(later, systemClock()->now() + 1h, stop.get_token(), systemClock()->now() + 1h);
  });
  beginMove();
  useAll("on its way", 98);
  cluster().moveAllKeys(slot, from, to);
  useAll("gone ahead", 97);
  endMove();
  useAll("arrived", 96);
  const auto waits = [&] {
    return cluster().node(to).command({"EXISTS", ":lockkeeper:v:" + later + ":lockkeeper:waiting:tagged"}) ==
           "1";
  };
  EXPECT_TRUE(waitUntil(waits)) << "who waited for a value goes along";
  values->announce(later, "at last", 1min, soon());
  EXPECT_EQ(told.wait_for(20s), std::future_status::ready);
  stop.request_stop();
  EXPECT_EQ(told.get(), "at last");
}

TEST_F(MovedSlot, WhoWaitsForAValueFollowsItAlsoAfterTheTimeForTheFirstLook) {
  StoreRegistry registry;
  redis::use(registry);
  const auto clock = std::make_shared<AdvancedClock>();
  // What is under way when the clock is set forward keeps its time.
  const auto waiters = registry.openValues(cluster().uri("ioTimeout=1m"), {.clock = clock});
  const std::string tagged = "{" + key + "}";
  const std::string waiting = ":lockkeeper:v:" + tagged + ":lockkeeper:waiting:tagged";
  std::stop_source stop;
  auto told = std::async(std::launch::async, [&, began = clock->now()] {
    return waiters->await(tagged, began + 1h, stop.get_token(), began + 10s);
  });
  EXPECT_TRUE(waitUntil([&] { return cluster().node(from).command({"EXISTS", waiting}) == "1"; }));
  clock->ahead = 11s;
  cluster().move(slot, from, to);
  registry.openValues(cluster().uri())->announce(tagged, "at last", 1min, soon());
  EXPECT_EQ(told.wait_for(20s), std::future_status::ready);
  stop.request_stop();
  EXPECT_EQ(told.get(), "at last");
}

TEST_F(MovedSlot, UnderLoadNothingIsGrantedTwiceWhileANodeIsAddedUsedAndRemoved) {
  const std::vector<std::string> keys{key, keyAt(from, "b"), keyAt(1, "c"), keyAt(2, "d")};
  std::map<std::string, std::atomic<int>> inside;
  std::map<std::string, std::atomic<Fence>> fences;
  for (const std::string& each : keys) {
    inside[each] = 0;
    fences[each] = 0;
  }
  std::atomic<bool> ended = false;
  std::atomic<int> turns = 0;
  const auto play = [&] {
    LockManager manager(open());
    for (std::size_t turn = 0; !ended; ++turn) {
      const std::string& each = keys[turn % keys.size()];
      const Lock lock = manager.lock(each, {.waitFor = 60s});
      EXPECT_EQ(++inside[each], 1);
      EXPECT_GT(*lock.fence(), fences[each].exchange(*lock.fence()));
      --inside[each];
      ++turns;
    }
  };
  std::vector<std::jthread> players;
  for (int player = 0; player < 4; ++player) players.emplace_back(play);
  const auto awaitTurns = [&] {
    EXPECT_TRUE(waitUntil([&, before = turns.load()] { return turns > before + 100; }));
  };
  awaitTurns();
  const Claimant listed = claimOf("{" + key + "}-listed");
  ASSERT_TRUE(granted(driver->acquire(listed.request())));
  const auto isListed = [&] {
    bool found = false;
    capability<Browsable>(*driver)->list(
        listed.key, [&](std::string_view each, const Holder&) { return !(found = each == listed.key); },
        soon());
    return found;
  };
  EXPECT_TRUE(isListed());
  const std::size_t added = cluster().addNode();
  cluster().move(slot, from, added);
  EXPECT_TRUE(isListed()) << "at a node that this process has not met";
  awaitTurns();
  const auto clients = [&] { return cluster().node(added).command({"CLIENT", "LIST"}); };
  EXPECT_NE(clients().find("name=lockkeeper"), std::string::npos);
  cluster().move(slot, added, to);
  awaitTurns();
  EXPECT_TRUE(waitUntil([&] { return isListed() && clients().find("name=lockkeeper") == std::string::npos; }))
      << "connections to a node without slots stay";
  cluster().removeNode(added);
  awaitTurns();
  ended = true;
}

TEST_F(MovedSlot, WhoWaitsIsListedWhereverTheQueueIs) {
  LockManager holders(driver);
  std::optional<Lock> held = holders.lock(key);
  const std::unique_ptr<Waiters> waiters = waitInOrder(2, *held->fence());
  // Keys of all masters together, most of which nobody waits for.
  std::vector<std::string> keys{key};
  for (std::size_t number = 0; number < 30; ++number) keys.push_back(newKey(number % 3));
  const auto listed = [&] {
    const auto all = capability<WaiterBrowsable>(*driver)->waiters(keys, soon());
    EXPECT_EQ(all.size(), keys.size());
    for (std::size_t each = 1; each < all.size(); ++each) EXPECT_TRUE(all[each].empty());
    return all.front().size();
  };
  EXPECT_EQ(listed(), 2U);
  beginMove();
  moveLock();
  endMove();
  EXPECT_TRUE(waitUntil([&] { return listed() == 2; }));
  held.reset();
  EXPECT_EQ(waiters->served(), (std::vector{0, 1}));
}

}  // namespace
}  // namespace lockkeeper::test
