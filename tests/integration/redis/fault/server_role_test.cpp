#include <mutex>

#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> replicaOf(const RedisServer& master) {
  return {"--replicaof", "127.0.0.1 " + std::to_string(master.port()), "--repl-diskless-sync-delay", "0"};
}

bool linked(const RedisServer& replica) {
  return replica.command({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
}

/// The message of the ConfigError that the first operation meets.
std::string refusal(LockDriver& driver) {
  try {
    (void)driver.acquire(Claimant{}.request());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(ServerRole, AReplicaIsRefused) {
  const RedisServer master;
  const RedisServer replica({.arguments = replicaOf(master)});
  for (const char* scheme : {"redis", "redis+legacy"}) {
    EXPECT_NE(refusal(*openRedis(replica.port(), "", scheme)).find("not a master"), std::string::npos);
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

TEST(ServerRole, AServerThatMayEvictLocksIsRefusedUnlessAllowed) {
  for (const std::string policy : {"allkeys-lru", "volatile-ttl", "allkeys-random"}) {
    const RedisServer server({.arguments = {"--maxmemory", "100mb", "--maxmemory-policy", policy}});
    for (const char* scheme : {"redis", "redis+legacy"}) {
      EXPECT_NE(refusal(*openRedis(server.port(), "", scheme)).find(policy), std::string::npos);
      const auto driver = openRedis(server.port(), "allowEviction=true", scheme);
      EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
    }
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
}

TEST(Replicas, AGrantThatNoReplicaHasIsNoGrant) {
  const RedisServer master;
  RedisServer replica({.arguments = replicaOf(master)});
  ASSERT_TRUE(waitUntil([&] { return linked(replica); }));
  const auto driver = openRedis(master.port(), "minReplicas=1&replicaTimeout=300ms");
  const Claimant first{};
  ASSERT_TRUE(waitUntil([&] {  // The master counts the replica once it has acknowledged something.
    try {
      return granted(driver->acquire(first.request(soon(), true)));
    } catch (const StoreUnavailable&) {
      return false;
    }
  }));
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
  EXPECT_TRUE(waitUntil([&] {
    try {
      return granted(driver->acquire(later.request(soon(), true)));
    } catch (const StoreUnavailable&) {
      return false;
    }
  }));
}

}  // namespace
}  // namespace lockkeeper::test
