#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "lockkeeper/lock_manager.h"

#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> replicaOf(const RedisServer& master) {
  return {"--replicaof", "127.0.0.1", std::to_string(master.port())};
}

/// For a master: its replicas need not wait for others.
const RedisOptions replicatesAtOnce{.arguments = {"--repl-diskless-sync-delay", "0"}};

bool linked(const RedisServer& replica) {
  return replica.command({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
}

/// The message of the error that the first operation meets.
template <class Expected>
std::string refusal(LockDriver& driver) {
  try {
    (void)driver.acquire(Claimant{}.request());
  } catch (const Expected& error) {
    return error.what();
  } catch (const Error& error) {
    return std::string("another error: ") + toString(error.code());
  }
  return "no error";
}

TEST(ServerRole, AReplicaIsRefused) {
  const RedisServer master;
  const RedisServer replica({.arguments = replicaOf(master)});
  for (const char* scheme : {"redis", "redis+legacy"}) {
    EXPECT_NE(refusal<StoreUnavailable>(*openRedis(replica.port(), "", scheme)).find("not a master"),
              std::string::npos);
  }
}

TEST(ServerRole, AMasterThatBecomesAReplicaGrantsNothing) {
  const RedisServer master;
  const RedisServer former;
  const auto driver = openRedis(former.port());
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  former.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  for (int i = 0; i < 3; ++i) EXPECT_THROW((void)driver->acquire(Claimant{}.request()), Error);
  former.command({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(waitUntil([&] {
    try {
      return granted(driver->acquire(Claimant{}.request()));
    } catch (const Error&) {
      return false;
    }
  }));
}

TEST(ServerRole, AMissingRightIsNotTakenForALossOfTheLock) {
  for (const char* scheme : {"redis", "redis+legacy"}) {
    SCOPED_TRACE(scheme);
    const RedisServer server;
    const auto driver = openRedis(server.port(), "", scheme);
    const Claimant who{};
    ASSERT_TRUE(granted(driver->acquire(who.request())));
    server.command({"ACL", "SETUSER", "default", "-get"});
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    driver->renew({&renewal, 1}, soon());
    EXPECT_EQ(renewal.outcome, RenewOutcome::unavailable);
    EXPECT_NE(renewal.cause.find("permit"), std::string::npos) << renewal.cause;
    EXPECT_THROW((void)driver->release(who.claim(), soon()), ConfigError);
    server.command({"ACL", "SETUSER", "default", "+get"});
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
}

/// A master with a replica, and a name that leads to the master and then to the replica in its place.
class Failover : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(waitUntil([&] { return linked(replica); }));
  }

  // As an operator does it: nobody's connection ends.
  void swapRoles() {
    replica.command({"REPLICAOF", "NO", "ONE"});
    master.command({"REPLICAOF", "127.0.0.1", std::to_string(replica.port())});
    name.leadTo(replica.port());
  }

  // False as long as no master is found.
  static bool renews(Lock& held) {
    try {
      held.renew();
      return true;
    } catch (const StoreUnavailable&) {
      return false;
    }
  }

  const RedisServer master{replicatesAtOnce};
  const RedisServer replica{{.arguments = replicaOf(master)}};
  FaultProxy name{master.port()};
  LockManager locks{openRedis(name.port(), "", GetParam())};
};

TEST_P(Failover, AHolderFollowsTheRoleToTheNewMaster) {
  const LockOptions manual{.ttl = longTtl, .renew = Renew::manual};
  Lock held = locks.lock("k", manual);
  ASSERT_TRUE(waitUntil([&] { return replica.command({"EXISTS", "k"}) == "1"; }));
  swapRoles();
  EXPECT_TRUE(waitUntil([&] { return renews(held); }));
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_EQ(replica.command({"EXISTS", "k"}), "0");
}

TEST_P(Failover, AHolderLeavesAFormerMasterThatDoesNotReachTheNewOne) {
  master.command({"CONFIG", "SET", "replica-serve-stale-data", "no"});
  Lock held = locks.lock("k", {.ttl = longTtl, .renew = Renew::manual});
  ASSERT_TRUE(waitUntil([&] { return replica.command({"EXISTS", "k"}) == "1"; }));
  replica.command({"REPLICAOF", "NO", "ONE"});
  master.command({"REPLICAOF", "127.0.0.1", "1"});  // nobody listens there
  name.leadTo(replica.port());
  EXPECT_TRUE(waitUntil([&] { return renews(held); }));
  EXPECT_EQ(held.release(), ReleaseResult::released);
}

TEST_P(Failover, AnAcquireThatMeetsAReplicaTriesUntilItsTimeIsUp) {
  LockManager early(openRedis(replica.port(), "", GetParam()));
  EXPECT_THROW((void)early.lock("k", {.ttl = longTtl, .waitFor = 200ms}), Error);
  auto waiting = std::async(std::launch::async, [&] {
    return early.lock("k", {.ttl = longTtl, .waitFor = 20s, .renew = Renew::manual}).valid();
  });
  EXPECT_EQ(waiting.wait_for(300ms), std::future_status::timeout) << "it must go on trying";
  replica.command({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(waiting.get());
}

// Also the connection that counts the replicas goes to the new master.
TEST(FailoverWithReplicas, AHolderFollowsTheRoleToTheNewMaster) {
  const RedisServer master{replicatesAtOnce};
  const RedisServer replica{{.arguments = replicaOf(master)}};
  ASSERT_TRUE(waitUntil([&] { return linked(replica); }));
  FaultProxy name{master.port()};
  LockManager locks(openRedis(name.port(), "minReplicas=1&replicaTimeout=1s"));
  Lock held = locks.lock("k", {.ttl = longTtl, .waitFor = 10s, .renew = Renew::manual});
  replica.command({"CONFIG", "SET", "repl-diskless-sync-delay", "0"});
  replica.command({"REPLICAOF", "NO", "ONE"});
  master.command({"REPLICAOF", "127.0.0.1", std::to_string(replica.port())});
  name.leadTo(replica.port());
  EXPECT_TRUE(waitUntil([&] {
    try {
      held.renew();
      return true;
    } catch (const StoreUnavailable&) {
      return false;
    } catch (const OutcomeUnknown&) {
      return false;
    }
  }));
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_EQ(replica.command({"EXISTS", "k"}), "0");
}

INSTANTIATE_TEST_SUITE_P(Schemes, Failover, ::testing::Values("redis", "redis+legacy"), schemeName);

TEST(ServerRole, AServerThatMayEvictLocksIsRefusedUnlessAllowed) {
  for (const std::string policy : {"allkeys-lru", "volatile-ttl", "allkeys-random"}) {
    const RedisServer server({.arguments = {"--maxmemory", "100mb", "--maxmemory-policy", policy}});
    for (const char* scheme : {"redis", "redis+legacy"}) {
      EXPECT_NE(refusal<ConfigError>(*openRedis(server.port(), "", scheme)).find(policy), std::string::npos);
      const auto driver = openRedis(server.port(), "allowEviction=true", scheme);
      EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
    }
  }
}

TEST(ServerRole, APolicyWithoutALimitOfMemoryEvictsNothing) {
  const RedisServer server({.arguments = {"--maxmemory", "0", "--maxmemory-policy", "volatile-lru"}});
  for (const char* scheme : {"redis", "redis+legacy"}) {
    EXPECT_TRUE(granted(openRedis(server.port(), "", scheme)->acquire(Claimant{}.request())));
  }
}

struct Notes final : Listener {
  void on(const Event& event) override {
    if (event.kind != EventKind::noted) return;
    const std::lock_guard guard(mutex);
    text += event.text;
  }
  std::mutex mutex;
  std::string text;
};

TEST(ServerRole, SaysWhatACrashOfTheServerDoesToItsLocks) {
  const RedisServer forgetful;
  const RedisServer careful({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
  const auto durability = [](const RedisServer& server) {
    const auto notes = std::make_shared<Notes>();
    StoreRegistry registry;
    redis::use(registry);
    Environment environment;
    environment.listener = notes;
    const auto driver = registry.open(server.uri(), environment);
    (void)driver->holder("k", soon());
    EXPECT_NE(notes->text.find(driver->promises().durability), std::string::npos);
    return driver->promises().durability;
  };
  EXPECT_NE(durability(forgetful), durability(careful));
  EXPECT_NE(durability(careful).find("always"), std::string::npos) << durability(careful);
  const std::string lack = "a replica that takes over may lack";
  EXPECT_EQ(durability(careful).find(lack), std::string::npos) << durability(careful);
  RedisServer replica({.arguments = replicaOf(careful)});
  ASSERT_TRUE(waitUntil([&] { return linked(replica); }));
  EXPECT_NE(durability(careful).find(lack), std::string::npos) << durability(careful);
}

// It has a holder whose lease is not due for hours, and whom a loss is told at once.
TEST(ServerRole, AServerThatMayEvictLocksFromNowOnIsRefusedSoon) {
  const RedisServer server;
  const auto notes = std::make_shared<Notes>();
  StoreRegistry registry;
  redis::use(registry);
  ManagerOptions options;
  options.environment.listener = notes;
  LockManager locks(registry.open(server.uri(), options.environment), options);
  const Lock evicted = locks.lock("evicted", {.ttl = 10h});
  server.command({"CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru"});
  server.command({"DEL", "evicted"});
  int key = 0;
  EXPECT_TRUE(waitUntil([&] {
    try {
      (void)locks.tryLock("k-" + std::to_string(++key));
      return false;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("may evict locks (maxmemory-policy allkeys-lru)"),
                std::string::npos);
      return true;
    } catch (const Error&) {
      return false;
    }
  }));
  server.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  EXPECT_TRUE(waitUntil([&] { return evicted.lost().stop_requested(); }));
  const std::lock_guard guard(notes->mutex);
  EXPECT_NE(notes->text.find("may evict locks (maxmemory-policy allkeys-lru)"), std::string::npos)
      << notes->text;
}

class Replicas : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(waitUntil([&] { return linked(replica); }));
  }

  const RedisServer master{replicatesAtOnce};
  RedisServer replica{{.arguments = replicaOf(master)}};
};

/// Once the master counts its replica, which it does when that has acknowledged something.
bool grantedSoon(LockDriver& driver, const Claimant& claimant) {
  return waitUntil([&] {
    try {
      return granted(driver.acquire(claimant.request(soon(), true)));
    } catch (const StoreUnavailable&) {
      return false;
    }
  });
}

TEST_F(Replicas, OneThatStandsStillMakesNoOtherCallLate) {
  const auto driver = openRedis(master.port(), "minReplicas=1&replicaTimeout=10s");
  const Claimant first{};
  ASSERT_TRUE(grantedSoon(*driver, first));
  replica.pause();
  const Claimant second{};
  auto waiting = std::async(std::launch::async, [&] { return driver->acquire(second.request(in(30s))); });
  EXPECT_TRUE(waitUntil([&] {
    return master.command({"CLIENT", "LIST"}).find("cmd=wait") != std::string::npos;
  }));
  EXPECT_TRUE(driver->holder(first.key, in(5s)));
  EXPECT_EQ(driver->release(first.claim(), in(5s)), ReleaseOutcome::released);
  EXPECT_EQ(waiting.wait_for(0s), std::future_status::timeout);
  replica.resume();
  EXPECT_TRUE(granted(waiting.get()));
}

// One asks for all who have come until then.
TEST_F(Replicas, WhoHasLittleTimeLeftDoesNotEndTheWaitOfOthers) {
  const auto driver = openRedis(master.port(), "minReplicas=1&replicaTimeout=10s&ioTimeout=500ms");
  ASSERT_TRUE(grantedSoon(*driver, Claimant{}));
  replica.pause();
  const auto acquire = [&](std::chrono::milliseconds time) {
    return std::async(std::launch::async,
                      [&driver, time] { return granted(driver->acquire(Claimant{}.request(in(time)))); });
  };
  std::vector<std::future<bool>> brief;
  brief.push_back(acquire(1s));
  EXPECT_TRUE(waitUntil([&] {
    return master.command({"CLIENT", "LIST"}).find("cmd=wait") != std::string::npos;
  }));
  std::future<bool> patient = acquire(30s);
  for (int i = 0; i < 8; ++i) brief.push_back(acquire(1200ms));
  for (std::future<bool>& each : brief) EXPECT_THROW((void)each.get(), Error);
  EXPECT_EQ(patient.wait_for(0s), std::future_status::timeout);
  replica.resume();
  EXPECT_TRUE(patient.get());
}

TEST_F(Replicas, ThoseOfAnotherServerDoNotCount) {
  const RedisServer granting;
  ASSERT_TRUE(grantedSoon(*openRedis(master.port(), "minReplicas=1"), Claimant{}));
  master.command({"CONFIG", "RESETSTAT"});
  FaultProxy name(granting.port());
  const auto driver = openRedis(name.port(), "minReplicas=1");
  EXPECT_FALSE(driver->holder("k", soon()));  // connects
  name.leadTo(master.port());
  const Claimant refused{};
  EXPECT_THROW((void)driver->acquire(refused.request()), StoreUnavailable);
  EXPECT_EQ(granting.command({"EXISTS", refused.key}), "0");
  const std::string stats = master.command({"INFO", "commandstats"});
  EXPECT_NE(stats.find("cmdstat_wait:"), std::string::npos) << stats;
}

TEST_F(Replicas, AMissingRightToAskForThemIsNamed) {
  const auto driver = openRedis(master.port(), "minReplicas=1");
  master.command({"ACL", "SETUSER", "default", "-publish"});
  const Claimant refused{};
  try {
    (void)driver->acquire(refused.request());
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("+publish"), std::string::npos) << error.what();
  }
  EXPECT_EQ(master.command({"EXISTS", refused.key}), "0");
}

TEST_F(Replicas, OneThatStandsStillHarmsNobodyElse) {
  const auto driver = openRedis(master.port(), "minReplicas=1&replicaTimeout=200ms&ioTimeout=500ms");
  const Claimant first{};
  ASSERT_TRUE(grantedSoon(*driver, first));
  const std::string connection = master.command({"CLIENT", "LIST", "TYPE", "normal"});
  const std::string id = connection.substr(0, connection.find(' '));
  replica.pause();
  std::atomic<int> told{0};
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 20; ++caller) {
      callers.emplace_back([&] {
        try {
          (void)driver->acquire(Claimant{}.request(in(3s)));
        } catch (const StoreUnavailable& error) {
          told += std::string(error.what()).find("replicas acknowledged") != std::string::npos;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    EXPECT_TRUE(driver->holder(first.key, soon())) << "what needs no replica goes on meanwhile";
  }
  EXPECT_EQ(told, 20);
  EXPECT_NE(master.command({"CLIENT", "LIST", "TYPE", "normal"}).find(id + " "), std::string::npos)
      << "the connection to a server that is well was given up";
  replica.resume();
}

TEST_F(Replicas, AGrantThatNoReplicaHasIsNoGrant) {
  const auto driver = openRedis(master.port(), "minReplicas=1&replicaTimeout=300ms");
  const Claimant first{};
  ASSERT_TRUE(grantedSoon(*driver, first));
  EXPECT_TRUE(waitUntil([&] { return replica.command({"EXISTS", first.key}) == "1"; }));

  replica.pause();
  for (int i = 0; i < 2; ++i) {
    const Claimant refused{};
    EXPECT_THROW((void)driver->acquire(refused.request()), StoreUnavailable);
    EXPECT_EQ(master.command({"EXISTS", refused.key}), "0") << "the grant must be given back";
  }
  Renewal renewal{.claim = first.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_NE(renewal.outcome, RenewOutcome::renewed);
  replica.resume();
  const Claimant later{};
  EXPECT_TRUE(grantedSoon(*driver, later));
}

TEST_F(Replicas, SeveralKeysTogetherAreConfirmedByOneLook) {
  const auto driver = openRedis(master.port(), "minReplicas=1&replicaTimeout=5s");
  ASSERT_TRUE(grantedSoon(*driver, Claimant{}));
  LockManager manager(driver);
  { const LockSet first = manager.lockAll({"x", "y"}); }  // the server knows the script now
  master.command({"CONFIG", "RESETSTAT"});
  LockSet set = manager.lockAll({"a", "b", "c", "d", "e"});
  const std::string stats = master.command({"INFO", "commandstats"});
  EXPECT_NE(stats.find("cmdstat_wait:calls=1,"), std::string::npos) << stats;
  EXPECT_NE(stats.find("cmdstat_evalsha:calls=1,"), std::string::npos) << stats;
  EXPECT_EQ(set.release(), ReleaseResult::released);

  LockManager impatient(openRedis(master.port(), "minReplicas=1&replicaTimeout=300ms"));
  replica.pause();
  EXPECT_THROW((void)impatient.tryLockAll({"a", "b", "c", "d", "e"}), StoreUnavailable);
  EXPECT_EQ(master.command({"EXISTS", "a", "b", "c", "d", "e"}), "0") << "the grants must be given back";
  replica.resume();
  EXPECT_TRUE(waitUntil([&] {
    try {
      return manager.tryLockAll({"a", "b", "c", "d", "e"}).has_value();
    } catch (const StoreUnavailable&) {
      return false;
    }
  }));
}

}  // namespace
}  // namespace lockkeeper::test
