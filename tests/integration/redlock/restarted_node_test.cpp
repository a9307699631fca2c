#include <thread>

#include "child_clock.h"
#include "lockkeeper/lock_manager.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr auto guard = 8s;
constexpr const char* withGuard = "restartGuard=8s&nodeTimeout=500ms";

/// A node that was restarted without its keys right after it had voted: nodes 0, 1 and 2 have the vote of the
/// first holder, and 2 forgets it; with 3 and 4, which never had it, it would make another quorum.
class RestartedNode : public RedlockTest {
 protected:
  void SetUp() override {
    for (const std::size_t node : {3U, 4U}) proxies[node]->set({.kind = ProxyFault::Kind::blackhole});
  }

  /// As soon as the nodes may vote.
  void holderGetsThreeVotes(LockDriver& driver) {
    ASSERT_TRUE(waitUntil([&] {
      try {
        return granted(driver.acquire(request(first, guard)));
      } catch (const Error&) {
        return false;
      }
    }));
    leaseEnds = now() + guard;
    for (const std::size_t node : {0U, 1U, 2U}) {
      ASSERT_TRUE(waitUntil([&] { return has(node, first.key); }));
    }
    for (const std::size_t node : {3U, 4U}) {
      proxies[node]->passThrough();
      proxies[node]->endConnections(Ending::rst);
      ASSERT_FALSE(has(node, first.key));
    }
    servers[2].restart();
    ASSERT_FALSE(has(2, first.key));
    ASSERT_LT(now(), leaseEnds) << "this machine is too slow for the test";
  }

  bool secondGets(LockDriver& driver) {
    Claimant second;
    second.key = first.key;
    try {
      return granted(driver.acquire(request(second, 1s)));
    } catch (const Error&) {
      return false;
    }
  }

  const Claimant first{};
  Instant leaseEnds{};
};

TEST_F(RestartedNode, LetsNoSecondHolderInWhileTheFirstOnesLeaseRuns) {
  const auto driver = open(withGuard);
  const auto bystander = open(withGuard);  // knows the nodes from before the restart, too
  holderGetsThreeVotes(*driver);
  const auto stranger = open(withGuard);
  int refusals = 0;
  while (now() + 1s < leaseEnds) {
    for (const auto& each : {driver, bystander, stranger}) {
      ASSERT_FALSE(secondGets(*each)) << "a second holder";
      ++refusals;
    }
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_GT(refusals, 3);
  EXPECT_TRUE(waitUntil([&] { return secondGets(*stranger); })) << "when it has ended";
}

TEST_F(RestartedNode, LetsASecondHolderInWhenTheGuardIsSwitchedOff) {
  const auto driver = open("restartGuard=off&nodeTimeout=500ms");
  holderGetsThreeVotes(*driver);
  const auto stranger = open("restartGuard=off&nodeTimeout=500ms");
  bool second = false;
  while (!second && now() < leaseEnds) second = secondGets(*stranger);
  EXPECT_TRUE(second) << "then what the guard is for does not happen, and its test shows nothing";
  EXPECT_LT(now(), leaseEnds);
}

using RestartGuards = RedlockTest;

TEST_F(RestartGuards, ARestartedNodeGetsNoKeyBackFromARenewalBeforeItMayVote) {
  constexpr auto shortGuard = 5s;
  const auto driver = open("restartGuard=5s&nodeTimeout=500ms");
  const Claimant who{};
  ASSERT_TRUE(waitUntil([&] {
    try {
      return granted(driver->acquire(request(who, shortGuard)));
    } catch (const Error&) {
      return false;
    }
  }));
  const auto renew = [&] {
    Renewal renewal{.claim = who.claim(), .ttl = shortGuard};
    driver->renew({&renewal, 1}, soon());
    return renewal.outcome;
  };
  // Nodes that were too young for the grant get the key from renewals. When all have it, one may lose it.
  for (std::size_t node = 0; node < nodeCount; ++node) {
    ASSERT_TRUE(waitUntil([&] { return renew() == RenewOutcome::renewed && has(node, who.key); }));
  }
  const Instant beforeRestart = now();
  servers[0].restart();
  ASSERT_FALSE(has(0, who.key));
  ASSERT_TRUE(waitUntil([&] {
    EXPECT_EQ(renew(), RenewOutcome::renewed);
    return has(0, who.key);
  })) << "it must get the key in the end";
  EXPECT_GE(now(), beforeRestart + shortGuard);
}

TEST_F(RestartGuards, AnAcquireSaysWhichNodesAreTooYoungAndWhenTheyVote) {
  const auto driver = open("restartGuard=1h&nodeTimeout=5s");
  try {
    (void)driver->acquire(request(Claimant{}, 1s));
    ADD_FAILURE() << "granted by servers that have just started";
  } catch (const StoreUnavailable& fault) {
    const std::string text = fault.what();
    for (const std::uint16_t port : ports()) {
      EXPECT_NE(text.find(":" + std::to_string(port) + "/0 may have restarted and votes in "),
                std::string::npos)
          << text;
    }
  }
}

TEST_F(RestartGuards, ACallerThatMayWaitThatLongWaits) {
  LockManager manager(open("restartGuard=3s&nodeTimeout=1s"));
  EXPECT_THROW((void)manager.tryLock("k", {.ttl = 1s}), StoreUnavailable);
  EXPECT_TRUE(manager.tryLock("k", {.ttl = 1s, .waitFor = 1min}));
}

TEST_F(RestartGuards, ALongerTtlThanTheGuardIsRefused) {
  const auto driver = open("restartGuard=5s");
  try {
    (void)driver->acquire(request(Claimant{}, 5001ms));
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& fault) {
    EXPECT_NE(std::string(fault.what()).find("5001ms"), std::string::npos) << fault.what();
    EXPECT_NE(std::string(fault.what()).find("5s"), std::string::npos) << fault.what();
  }
}

TEST_F(RestartGuards, SwitchingThemOffIsToldToTheListener) {
  const auto rounds = std::make_shared<Rounds>();
  (void)open("restartGuard=off", rounds);
  EXPECT_NE(rounds->notes().find("restartGuard is off"), std::string::npos);
  const auto others = std::make_shared<Rounds>();
  (void)open("restartGuard=5s", others);
  EXPECT_EQ(others->notes(), "");
}

TEST(SyncedNodes, VoteAtOnceAfterARestartWhenDeclaredAndFoundSo) {
  const RedisOptions synced{.arguments = {"--appendonly", "yes", "--appendfsync", "always"}};
  std::array<RedisServer, 3> servers{RedisServer(synced), RedisServer(synced), RedisServer(synced)};
  const std::string uri = redlockUri({servers[0].port(), servers[1].port(), servers[2].port()},
                                     "restartGuard=1h&appendfsync=always&nodeTimeout=1s");
  const auto driver = openRedlock(uri);
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire({.claim = who.claim(), .ttl = longTtl, .deadline = soon()})));
  for (RedisServer& server : servers) server.restart();
  const auto stranger = openRedlock(uri);
  Claimant other;
  other.key = who.key;
  EXPECT_FALSE(granted(stranger->acquire(other.request()))) << "they have kept it";
  EXPECT_TRUE(granted(stranger->acquire(Claimant{}.request())));

  std::array<RedisServer, 3> forgetful;
  const auto declared =
      openRedlock(redlockUri({forgetful[0].port(), forgetful[1].port(), forgetful[2].port()},
                             "restartGuard=1h&appendfsync=always&nodeTimeout=1s"));
  EXPECT_THROW((void)declared->acquire(Claimant{}.request()), StoreUnavailable)
      << "declared, but not found so";
}

/// Three nodes, of which the first has a wall clock that can be set.
class ObservedNodes : public ::testing::Test {
 protected:
  static constexpr auto guard = 2s;
  static constexpr const char* query = "restartGuard=2s&nodeTimeout=500ms";

  std::shared_ptr<LockDriver> newProcess(std::shared_ptr<Listener> listener = nullptr,
                                         const std::string& user = "") const {
    std::string uri = redlockUri({jumping.port(), steady[0].port(), steady[1].port()}, query);
    if (!user.empty()) {
      for (std::size_t at = uri.find("127."); at != std::string::npos;
           at = uri.find("127.", at + user.size() + 2))
        uri.insert(at, user + "@");
    }
    return openRedlock(uri, std::move(listener));
  }
  static bool gets(LockDriver& driver, const std::string& key) {
    Claimant who;
    who.key = key;
    try {
      return granted(driver.acquire({.claim = who.claim(), .ttl = 1s, .deadline = soon()}));
    } catch (const Error&) {
      return false;
    }
  }
  /// Somebody has observed all nodes for as long as the guard says.
  void observeAll() const {
    const auto driver = newProcess();
    int key = 0;
    ASSERT_TRUE(waitUntil([&] { return gets(*driver, "first-" + std::to_string(++key)); }));
    for (const RedisServer* node : {&jumping, &steady[0], &steady[1]}) {
      ASSERT_TRUE(waitUntil([&] {
        (void)gets(*driver, "more-" + std::to_string(++key));
        return node->command({"GET", ":lockkeeper:run"}).find(" 2000 ") != std::string::npos;
      }));
    }
  }

  const ChildClock clock;
  RedisServer jumping{{.environment = clock.environment()}};
  std::array<RedisServer, 2> steady;
};

TEST_F(ObservedNodes, ANewProcessNeedNotWaitWhereAnotherOneHas) {
  observeAll();
  EXPECT_TRUE(gets(*newProcess(), "k")) << "at its first attempt";
}

TEST_F(ObservedNodes, ThatRestartEmptyAndSetTheirClockForwardLetNoNewProcessInWhileAMajorityIsHeld) {
  observeAll();
  for (const RedisServer* node : {&jumping, &steady[0]}) {
    ASSERT_EQ(node->command({"SET", "k", "a holder's", "PX", "60000"}), "OK");
  }
  jumping.restart();
  ASSERT_EQ(jumping.command({"EXISTS", "k"}), "0");
  clock.jump(+3600);
  ASSERT_TRUE(waitUntil([&] {
    const std::string info = jumping.command({"INFO", "server"});
    const std::string name = "uptime_in_seconds:";
    return std::stoi(info.substr(info.find(name) + name.size())) > 3000;
  })) << "the shim does nothing";
  EXPECT_FALSE(gets(*newProcess(), "k")) << "a second holder";
  EXPECT_TRUE(gets(*newProcess(), "other")) << "two nodes are enough for what is free there";
}

// As a task does that is started every minute and runs for a second.
TEST_F(ObservedNodes, ProcessesThatEndSoonObserveThemTogether) {
  const Instant began = now();
  int processes = 0;
  ASSERT_TRUE(waitUntil([&] { return gets(*newProcess(), "k-" + std::to_string(++processes)); }));
  EXPECT_GT(processes, 2);
  EXPECT_GE(now() - began, guard);
}

TEST_F(ObservedNodes, AUserNeedsNoMoreThanTheDocumentedRights) {
  for (const RedisServer* node : {&jumping, &steady[0], &steady[1]}) {
    std::vector<std::string> user = {"ACL",    "SETUSER",          "keeper", "on",          ">pw",
                                     "~key-*", "~:lockkeeper:run", "-@all",  "+@connection"};
    for (const char* const command :
         {"info", "set", "get", "incr", "del", "pexpire", "pttl", "time", "eval", "evalsha", "scan", "wait"})
      user.push_back(std::string("+") + command);
    ASSERT_EQ(node->command(user), "OK");
  }
  observeAll();
  const auto rounds = std::make_shared<Rounds>();
  LockManager manager(newProcess(rounds, "keeper:pw"));
  std::optional<Lock> held = manager.tryLock("key-1", {.ttl = 1s});
  ASSERT_TRUE(held) << "at its first attempt";
  held->renew();
  EXPECT_FALSE(LockManager(newProcess(nullptr, "keeper:pw")).tryLock("key-1", {.ttl = 1s}));
  EXPECT_EQ(held->release(), ReleaseResult::released);
  EXPECT_EQ(rounds->notes().find("observes this node for itself"), std::string::npos) << rounds->notes();
}

TEST_F(ObservedNodes, AUserWithoutARightToTheRecordObservesForItself) {
  for (const RedisServer* node : {&jumping, &steady[0], &steady[1]}) {
    node->command({"ACL", "SETUSER", "keeper", "on", ">pw", "~key-*", "+@all"});
  }
  observeAll();
  const auto rounds = std::make_shared<Rounds>();
  LockManager manager(newProcess(rounds, "keeper:pw"));
  const Instant began = now();
  EXPECT_TRUE(manager.tryLock("key-1", {.ttl = 1s, .waitFor = 1min}));
  EXPECT_GE(now() - began, guard);
  EXPECT_NE(rounds->notes().find("observes this node for itself"), std::string::npos) << rounds->notes();
  EXPECT_NE(rounds->notes().find(":lockkeeper:run"), std::string::npos) << rounds->notes();
}

}  // namespace
}  // namespace lockkeeper::test
