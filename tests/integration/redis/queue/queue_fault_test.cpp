#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "claimant.h"
#include "lockkeeper/driver/queue.h"
#include "queue/queue_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using QueueFault = RedisQueueTest;

TEST_F(QueueFault, ASubscriptionThatIsKilledIsMadeAgain) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  Member waits = wait();
  ASSERT_TRUE(subscribed(1));
  for (int kill = 0; kill < 3; ++kill) {
    ASSERT_EQ(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "1");
    ASSERT_TRUE(waitUntil([&] { return channelsIn({"PUBSUB", "CHANNELS"}) == 1; }));
    ASSERT_TRUE(subscribed(1));
  }
  const std::string waiter = firstWaiter();
  EXPECT_EQ(held->release(), ReleaseResult::released);
  EXPECT_EQ(value(), waiter) << "its new channel is heard";
  EXPECT_TRUE(waits.take());
}

TEST_F(QueueFault, AKilledConnectionOfCommandsKeepsThePlaceInTheQueue) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  Member first = wait();
  ASSERT_TRUE(subscribed(1));
  Member second = wait();
  ASSERT_TRUE(subscribed(2));
  server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  held.reset();
  std::optional<Lock> next = first.take();
  ASSERT_TRUE(next);
  EXPECT_TRUE(second.lock.wait_for(0s) == std::future_status::timeout || !next->valid());
  next.reset();
  EXPECT_TRUE(second.take());
}

TEST_F(QueueFault, AConnectionThatSwallowsEverythingCostsABoundedPause) {
  LockManager manager(direct);
  Lock held = manager.lock("k");
  Member waits = waitAt(openProxied("ioTimeout=500ms"));
  ASSERT_TRUE(subscribed(1));
  const std::string waiter = firstWaiter();
  proxy.set({.kind = ProxyFault::Kind::blackhole});
  ASSERT_EQ(held.release(), ReleaseResult::released);
  ASSERT_EQ(value(), waiter) << "nobody knows that it does not hear";
  std::this_thread::sleep_for(1200ms);
  proxy.passThrough();
  proxy.endConnections(Ending::rst);
  EXPECT_TRUE(waits.take());
}

TEST_F(QueueFault, AMessageThatIsLostIsFoundOutByLooking) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  Member waits = wait();
  ASSERT_TRUE(subscribed(1));
  // As a server does that has published and was cut off before the message came through.
  const std::string waiter = firstWaiter();
  const std::string script =
      "redis.call('DEL', KEYS[2], KEYS[3]) return redis.call('SET', KEYS[1], ARGV[1], 'PX', 30000)";
  ASSERT_EQ(server.command({"EVAL", script, "3", "k", queueKey, waitersKey, waiter}), "OK");
  const Instant granted = now();
  EXPECT_TRUE(waits.take());
  EXPECT_LT(since(granted), 6s);
  EXPECT_EQ(held->release(), ReleaseResult::notOwner);
}

TEST_F(QueueFault, AServerThatRestartsEmptyLosesTheQueueAndNoWaiter) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k", {.ttl = 1s});
  Member first = wait();
  ASSERT_TRUE(subscribed(1));
  Member second = wait();
  ASSERT_TRUE(subscribed(2));
  server.kill();
  server.restart();
  // Who comes first is not known any more; nobody is forgotten.
  std::thread taker([&] { EXPECT_TRUE(first.take()); });
  EXPECT_TRUE(second.take());
  taker.join();
}

TEST_F(QueueFault, AReplyToALookThatIsLostKeepsThePlaceInTheQueue) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  Member first = waitAt(openProxied());
  ASSERT_TRUE(subscribed(1));
  Member second = wait();
  ASSERT_TRUE(subscribed(2));
  const std::string order = server.command({"ZRANGE", queueKey, "0", "-1"});
  for (int round = 0; round < 3; ++round) {
    proxy.cutReplies(0, Ending::rst);
    ASSERT_TRUE(waitUntil([&] { return proxy.fired() == 1; }));
    std::this_thread::sleep_for(600ms);
    EXPECT_EQ(server.command({"ZRANGE", queueKey, "0", "-1"}), order);
  }
  held.reset();
  std::optional<Lock> next = first.take();
  ASSERT_TRUE(next);
  EXPECT_TRUE(second.lock.wait_for(0s) == std::future_status::timeout || !next->valid());
  next.reset();
  EXPECT_TRUE(second.take());
}

/// The words of the first command in what a client has sent.
std::vector<std::string> firstCommandIn(const std::string& sent) {
  std::istringstream lines(sent);
  const auto next = [&] {
    std::string line;
    std::getline(lines, line);
    return line.substr(0, line.find('\r'));
  };
  std::vector<std::string> words(std::stoul(next().substr(1)));
  for (std::string& word : words) {
    (void)next();  // its length
    word = next();
  }
  return words;
}

TEST_F(QueueFault, ALeaveOfTheQueueThatComesLateEndsNoLaterClaim) {
  LockManager manager(direct);
  Lock held = manager.lock("k");
  Member waits = waitAt(openProxied("ioTimeout=500ms"), 5s);
  ASSERT_TRUE(subscribed(1));
  proxy.set({.kind = ProxyFault::Kind::hold, .text = "\r\nrelease\r\n"});
  ASSERT_TRUE(waitUntil([&] { return proxy.fired() == 1; })) << "the wait is over";
  EXPECT_EQ(held.release(), ReleaseResult::released);
  const std::optional<Lock> lock = waits.take();
  server.command(firstCommandIn(proxy.held()));
  if (lock) {
    EXPECT_FALSE(isFree("k")) << "that was the place in the queue";
  } else {
    EXPECT_TRUE(manager.tryLock("k", {.waitFor = 5s}));
  }
}

/// How long a wait of 100 ms lasts that ends in doubt, since the server takes `pause` for each answer.
class SlowLook : public QueueFault {
 protected:
  std::chrono::nanoseconds doubtAfter(const std::string& query, std::chrono::milliseconds pause,
                                      std::chrono::milliseconds deadline) {
    LockManager manager(direct);
    const Lock held = manager.lock("k");
    const auto slow = openProxied(query);
    EXPECT_FALSE(LockManager(slow).tryLock("k", {.waitFor = 10ms})) << "it is connected";
    proxy.set({.kind = ProxyFault::Kind::delay, .pause = pause});
    const Claimant claimant{.key = "k"};
    const Instant began = now();
    EXPECT_THROW((void)capability<Waitable>(*slow)->acquireWaiting(claimant.request(in(deadline)), 100ms, {}),
                 OutcomeUnknown);
    return since(began);
  }
};

TEST_F(SlowLook, AndTheLeaveAfterItHaveOneTimeoutTogether) {
  EXPECT_LT(doubtAfter("ioTimeout=1s", 800ms, 10s), 1500ms);
}

TEST_F(SlowLook, ThatIsTheFirstEndsAtTheDeadlineOfItsRequest) {
  EXPECT_LT(doubtAfter("ioTimeout=2s", 1500ms, 200ms), 1200ms);
}

TEST_F(QueueFault, ALookThatIsRefusedIsRepeatedByTheClaimThatHasTheKey) {
  LockManager manager(direct);
  const Lock held = manager.lock("k");
  Member waits = wait();
  ASSERT_TRUE(subscribed(1));
  const std::string waiter = firstWaiter();
  // It has the key, and has not heard of it.
  ASSERT_EQ(server.command({"DEL", queueKey, waitersKey}), "2");
  ASSERT_EQ(server.command({"SET", "k", waiter, "PX", "30000"}), "OK");
  ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
  EXPECT_EQ(waits.lock.wait_for(500ms), std::future_status::timeout);
  ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "0"}), "OK");
  const std::optional<Lock> lock = waits.take();
  ASSERT_TRUE(lock);
  EXPECT_EQ(value(), waiter);
}

TEST_F(QueueFault, AWaiterLeavesAMasterThatWasDemoted) {
  LockManager manager(direct);
  const Lock before = manager.lock("k", {.waitFor = 20s});
  Member waits = waitAt(openProxied());
  ASSERT_TRUE(subscribed(1));
  const RedisServer promoted;
  LockManager holders(openRedis(promoted.port()));
  std::optional<Lock> held = holders.lock("k");
  proxy.leadTo(promoted.port());
  // Its connections stay open, and it goes on answering whatever does not write.
  ASSERT_EQ(server.command({"REPLICAOF", "127.0.0.1", "1"}), "OK");
  ASSERT_TRUE(waitUntil([&] {
    return promoted.command({"HVALS", waitersKey}).find("lockkeeper:") != std::string::npos &&
           promoted.command({"PUBSUB", "CHANNELS"}).find("lockkeeper:") != std::string::npos;
  })) << "it listens where it waits";
  const std::string waiter = promoted.command({"ZRANGE", queueKey, "0", "-1"});
  EXPECT_EQ(held->release(), ReleaseResult::released);
  EXPECT_EQ(promoted.command({"GET", "k"}) + "\n", waiter);
  EXPECT_TRUE(waits.take());
}

/// What the journal of members must say: nobody is in while somebody else is, and fences increase. Who was
/// killed, or has stood still for the rest of its lease, has left.
void checkJournal(const std::vector<std::string>& lines, std::size_t turnsAtLeast) {
  std::string inside;
  Fence latest = 0;
  std::size_t turns = 0;
  for (const std::string& line : lines) {
    if (line.starts_with("up ")) continue;
    if (line.starts_with("killed ") || line.starts_with("lost ")) {
      if (inside == line.substr(line.find(' ') + 1)) inside.clear();
    } else if (line.starts_with("out ")) {
      EXPECT_EQ(inside, line.substr(4)) << line;
      inside.clear();
    } else {
      const std::size_t space = line.rfind(' ');
      EXPECT_EQ(inside, "") << line;
      const Fence fence = std::stoull(line.substr(space + 1));
      EXPECT_GT(fence, latest) << line;
      latest = fence;
      inside = line.substr(3, space - 3);
      ++turns;
    }
  }
  EXPECT_GE(turns, turnsAtLeast);
}

TEST_F(QueueFault, ThereAreNeverTwoHoldersWhateverIsKilled) {
  constexpr int members = 4;
  std::map<std::string, Process> running;
  int started = 0;
  const auto start = [&] {
    const std::string name = "m" + std::to_string(++started);
    running.emplace(name, process(name, 100000, 1ms));
  };
  while (started < members) start();
  const auto turns = [&] { return journal().size(); };
  ASSERT_TRUE(waitUntil([&] { return turns() > 50; }));
  for (int round = 0; round < 12; ++round) {
    const std::size_t before = turns();
    switch (round % 4) {
      case 0:
        server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
        break;
      case 1:
        server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        break;
      case 2:
        server.command({"SCRIPT", "FLUSH"});
        break;
      default: {
        auto victim = running.begin();
        victim->second.signal(SIGKILL);
        (void)victim->second.waitFor(5s);
        addToJournal("killed " + victim->first);
        running.erase(victim);
        start();
      }
    }
    EXPECT_TRUE(waitUntil([&] { return turns() > before + 40; })) << "in round " << round;
  }
  for (auto& [name, member] : running) {
    member.signal(SIGKILL);
    (void)member.waitFor(5s);
  }
  running.clear();
  checkJournal(journal(), 200);
}

}  // namespace
}  // namespace lockkeeper::test
