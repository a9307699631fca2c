#include <thread>

#include "lockkeeper/driver/inspection.h"
#include "queue/queue_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using HandOver = RedisQueueTest;

TEST_F(HandOver, AProcessWaitsForManyKeysOnOneChannelAndOnceForEachKey) {
  constexpr std::size_t keys = 6;
  constexpr std::size_t callersPerKey = 3;
  LockManager holders(direct);
  LockManager waiters(openRedis(server.port()));
  for (int round = 0; round < 5; ++round) {
    std::vector<Lock> held;
    std::vector<std::jthread> threads;
    std::atomic<std::size_t> granted = 0;
    for (std::size_t i = 0; i < keys; ++i) held.push_back(holders.lock("k" + std::to_string(i)));
    for (std::size_t i = 0; i < keys * callersPerKey; ++i) {
      threads.emplace_back([&, key = "k" + std::to_string(i % keys)] {
        if (waiters.tryLock(key, {.waitFor = 60s})) ++granted;
      });
    }
    for (std::size_t i = 0; i < keys; ++i) {
      const std::string queue = "{k" + std::to_string(i) + "}:lockkeeper:queue";
      EXPECT_TRUE(waitUntil([&] { return server.command({"ZCARD", queue}) == "1"; }));
    }
    EXPECT_TRUE(waitUntil([&] { return channelsIn({"PUBSUB", "CHANNELS"}) == 1; }));
    held.clear();
    threads.clear();
    EXPECT_EQ(granted, keys * callersPerKey);
  }
}

TEST_F(HandOver, LeavesNothingBehindButTheFence) {
  for (const char* query : {"fence=on", "fence=off"}) {
    LockManager manager(openRedis(server.port(), query));
    std::optional<Lock> held = manager.lock("k", {.waitFor = 10s});
    Member waits = wait(query);
    Member givesUp = wait(query, 100ms);
    EXPECT_FALSE(givesUp.take());
    ASSERT_TRUE(queued(1));
    held.reset();
    std::optional<Lock> next = waits.take();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->release(), ReleaseResult::released);
    EXPECT_EQ(server.command({"EXISTS", "k", queueKey, waitersKey}), "0");
  }
}

TEST_F(HandOver, AGrantThatItsHolderHasNotHeardOfYetKeepsOthersOutAndShowsWhoseItIs) {
  LockManager manager(direct);
  Lock held = manager.lock("k");
  const Process waits = process("one", 1, 0ms, 30s);
  ASSERT_TRUE(subscribed(1));
  const std::string waiter = firstWaiter();
  waits.pause();
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_EQ(value(), waiter);
  EXPECT_EQ(server.command({"SET", "k", "foreign", "NX", "PX", "60000"}), "(nil)");
  EXPECT_FALSE(manager.tryLock("k"));
  const auto holder = direct->holder("k", soon());
  ASSERT_TRUE(holder);
  EXPECT_NE(holder->owner, "");
  EXPECT_EQ(holder->fence, counter());
  EXPECT_LE(holder->remaining, 30s) << "its ttl";
  EXPECT_TRUE(capability<Breakable>(*direct)->breakLock("k", soon(), &*holder));
}

TEST_F(HandOver, APlainClientsDeletionIsFoundByLooking) {
  const char* const often = "the first one looks once a second or more often, whoever holds it";
  ASSERT_EQ(server.command({"SET", "k", "foreign", "NX", "PX", "60000"}), "OK");
  Member waits = wait();
  ASSERT_TRUE(subscribed(1));
  EXPECT_LE(looksIn(firstWaiter()), 1s) << often;
  ASSERT_EQ(server.command({"DEL", "k"}), "1");
  const std::optional<Lock> lock = waits.take();
  ASSERT_TRUE(lock);

  Member next = wait();
  ASSERT_TRUE(subscribed(1));
  EXPECT_LE(looksIn(firstWaiter()), 1s) << often;
  ASSERT_EQ(server.command({"DEL", "k"}), "1");
  EXPECT_TRUE(next.take());
}

TEST_F(HandOver, AHoldersEndIsFoundWhenItsLeaseEnds) {
  Process holder = process("holder", 1, 60s);
  ASSERT_TRUE(waitUntil([&] { return journaled("in holder"); }));
  Member waits = wait();
  ASSERT_TRUE(subscribed(1));
  holder.signal(SIGKILL);
  const Instant died = now();
  EXPECT_TRUE(waits.take());
  EXPECT_LT(since(died), 4s) << "its ttl is two seconds";
}

TEST_F(HandOver, ATimeoutComesWhenItIsDueWhoeverComesAndGoes) {
  LockManager manager(direct);
  const Lock held = manager.lock("k");
  const Instant began = now();
  Member timesOut = wait("", 1500ms);
  ASSERT_TRUE(queued(1));
  int guests = 0;
  while (timesOut.lock.wait_for(0s) == std::future_status::timeout && since(began) < 20s) {
    EXPECT_FALSE(wait("", 100ms).take());
    ++guests;
  }
  EXPECT_GT(guests, 0);
  EXPECT_FALSE(timesOut.take(0s)) << "though guests come and go for ever";
  EXPECT_GE(since(began), 1500ms);
  EXPECT_EQ(queued(), 0U);
}

TEST_F(HandOver, EntriesThatAreGoneWhileTheirWaitersLiveComeBackToTheirPlaces) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  Member first = wait();
  ASSERT_TRUE(subscribed(1));
  Member second = wait();
  ASSERT_TRUE(subscribed(2));
  const std::string order = server.command({"ZRANGE", queueKey, "0", "-1"});
  ASSERT_EQ(server.command({"DEL", queueKey, waitersKey}), "2");
  // The second one has to connect anew, and so finds out first that it has no entry.
  const std::string clients = server.command({"CLIENT", "LIST", "TYPE", "pubsub"});
  const std::string last = std::to_string(std::stoul(clients.substr(clients.rfind("id=") + 3)));
  ASSERT_EQ(server.command({"CLIENT", "KILL", "ID", last}), "1");
  ASSERT_TRUE(queued(1));
  ASSERT_TRUE(queued(2)) << "when they have looked";
  EXPECT_EQ(server.command({"ZRANGE", queueKey, "0", "-1"}), order);
  ASSERT_TRUE(subscribed(2));
  held.reset();
  std::optional<Lock> next = first.take();
  ASSERT_TRUE(next);
  EXPECT_TRUE(second.lock.wait_for(0s) == std::future_status::timeout || !next->valid());
  next.reset();
  EXPECT_TRUE(second.take());
}

/// Who waits "k" beside its holder, which has a place in the queue, too, as after a reply that was lost.
class OwnPlace : public RedisQueueTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(OwnPlace, IsTakenOutByTheReleaseAndTheNextOneGetsTheKey) {
  LockManager manager(direct);
  Lock held = manager.lock("k");
  const std::string holder = value();
  Member next = wait();
  ASSERT_TRUE(subscribed(1));
  ASSERT_EQ(server.command({"ZADD", queueKey, GetParam(), holder}), "1");
  ASSERT_EQ(server.command({"HSET", waitersKey, holder, "9999999999999 1 1000 0 "}), "1");
  EXPECT_EQ(held.release(), ReleaseResult::released);
  const std::optional<Lock> lock = next.take();
  ASSERT_TRUE(lock);
  EXPECT_EQ(queued(), 0U);
  EXPECT_EQ(server.command({"HEXISTS", waitersKey, holder}), "0");
}

INSTANTIATE_TEST_SUITE_P(BeforeAndBehindOthers, OwnPlace, ::testing::Values("1", "9000000000000000"));

TEST_F(HandOver, WhoIsTheFirstOfASecondToComeMakesTheQueueLiveForNineSeconds) {
  LockManager manager(direct);
  const Lock held = manager.lock("k");
  const auto driver = openRedis(server.port());
  {
    Member early = waitAt(driver);
    ASSERT_TRUE(subscribed(1)) << "so that its next claim can be told";
    early.manager->stop();
    EXPECT_FALSE(early.take());
  }
  const std::string second = server.command({"TIME"}).substr(0, 10);
  for (const std::string waiter : {"a", "b"}) {
    server.command({"ZADD", queueKey, std::to_string(std::stoll(second) - 2) + "000000", waiter});
    server.command({"HSET", waitersKey, waiter, second + "999 1 1000 0 "});
  }
  ASSERT_EQ(server.command({"PTTL", queueKey}), "-1");
  Member waits = waitAt(driver);
  ASSERT_TRUE(queued(3));
  EXPECT_GT(std::stol(server.command({"PTTL", queueKey})), 8000);
  EXPECT_GT(std::stol(server.command({"PTTL", waitersKey})), 8000);
  waits.manager->stop();
  EXPECT_FALSE(waits.take());
}

TEST_F(HandOver, AWaiterThatIsKilledDelaysNobody) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  std::vector<Process> killed;
  for (const char* name : {"one", "two", "three"}) killed.push_back(process(name));
  ASSERT_TRUE(subscribed(3));
  Member waits = wait();
  ASSERT_TRUE(subscribed(4));
  for (const Process& each : killed) each.signal(SIGKILL);
  ASSERT_TRUE(waitUntil([&] { return channelsIn({"PUBSUB", "CHANNELS"}) == 1; }));
  const std::string waiter = lastWaiter();
  EXPECT_EQ(held->release(), ReleaseResult::released);
  EXPECT_EQ(value(), waiter) << "at once";
  EXPECT_TRUE(waits.take());
}

TEST_F(HandOver, AWaiterThatStandsStillHasTheKeyForItsTtlAndComesBackToItsPlace) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  Process frozen = process("frozen", 1, 50ms);
  ASSERT_TRUE(subscribed(1));
  const std::string waiter = firstWaiter();
  Member second = wait();
  ASSERT_TRUE(subscribed(2));
  Member third = wait();
  ASSERT_TRUE(subscribed(3));
  frozen.pause();
  EXPECT_EQ(held->release(), ReleaseResult::released);
  EXPECT_EQ(value(), waiter);
  EXPECT_LE(remaining(), 2s);
  std::optional<Lock> next = second.take();
  ASSERT_TRUE(next);
  EXPECT_FALSE(journaled("in frozen"));

  frozen.resume();
  ASSERT_TRUE(queued(2));
  EXPECT_FALSE(journaled("in frozen")) << "its lease has ended";
  next.reset();
  EXPECT_TRUE(third.take());
  EXPECT_TRUE(journaled("out frozen") || journaled("lost frozen")) << "it came first";
}

TEST_F(HandOver, SeveralWaitersThatStandStillCostTenSecondsAndATtlAtMost) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  std::vector<Process> frozen;
  for (const char* name : {"one", "two"}) {
    frozen.push_back(process(name));
    ASSERT_TRUE(subscribed(frozen.size()));
  }
  Member waits = wait();
  ASSERT_TRUE(subscribed(3));
  for (const Process& each : frozen) each.pause();
  held.reset();
  const Instant released = now();
  EXPECT_TRUE(waits.take());
  EXPECT_LT(since(released), 12s);
}

TEST_F(HandOver, TheEndOfALeaseIsFoundBehindADeadWaiter) {
  LockManager manager(direct);
  // It is not known to be dead yet: it should look in four seconds, and polls.
  const std::string addWaiter =
      "redis.call('ZADD', KEYS[1], 1, 'dead') return redis.call('HSET', KEYS[2], 'dead', "
      "string.format('%.0f 1 1000 0 ', redis.call('TIME')[1] * 1000 + 4000))";
  const Lock held = manager.lock("k", {.ttl = 1500ms, .renew = Renew::manual});
  const Instant began = now();
  ASSERT_EQ(server.command({"EVAL", addWaiter, "2", queueKey, waitersKey}), "1");
  Member waits = wait();
  EXPECT_TRUE(waits.take());
  EXPECT_LT(since(began), 5s) << "it takes the lease, and the ttl of the dead one, and no look at times";
}

TEST_F(HandOver, ABrokenLockIsNotOfferedToTheOneThatHadIt) {
  LockManager manager(direct);
  const Lock held = manager.lock("k");
  ASSERT_EQ(server.command({"ZADD", queueKey, "1", value()}), "1");
  ASSERT_EQ(server.command({"HSET", waitersKey, value(), "9999999999999 1 1000 0 "}), "1");
  EXPECT_TRUE(capability<Breakable>(*direct)->breakLock("k", soon()));
  EXPECT_EQ(value(), "(nil)");
  EXPECT_EQ(queued(), 0U);
}

TEST_F(HandOver, AWaiterThatDiesAtTheMomentOfItsTurnKeepsTheKeyForItsTtl) {
  LockManager manager(direct);
  Lock held = manager.lock("k");
  Process dies = process("dies");
  ASSERT_TRUE(subscribed(1));
  Member waits = wait();
  ASSERT_TRUE(subscribed(2));
  const std::string waiter = firstWaiter();
  dies.pause();
  ASSERT_EQ(held.release(), ReleaseResult::released);
  EXPECT_EQ(value(), waiter);
  EXPECT_LE(remaining(), 2s);
  dies.signal(SIGKILL);
  EXPECT_TRUE(waits.take());
}

TEST_F(HandOver, AStoppedWaiterLeavesTheQueueAtOnce) {
  LockManager manager(direct);
  const Lock held = manager.lock("k");
  Member waits = wait();
  ASSERT_TRUE(subscribed(1));
  waits.manager->stop();
  EXPECT_FALSE(waits.take(5s));
  EXPECT_EQ(queued(), 0U);
}

}  // namespace
}  // namespace lockkeeper::test
