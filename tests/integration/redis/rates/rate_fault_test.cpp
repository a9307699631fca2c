// Rate limits while Redis, or the way to it, fails.

#include <atomic>
#include <thread>

#include "lockkeeper/rate_limiter.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr auto operationTimeout = 500ms;

std::shared_ptr<RateDriver> openRates(std::uint16_t port, const std::string& query = "") {
  return capability<RateDriver>(openRedis(port, query));
}

RatePolicy sms(std::string_view rate, RatePolicyOptions options = {}) {
  options.rate = Rate::parse("rate", rate);
  return RatePolicy("sms", options);
}

std::vector<std::string> replicaOf(const RedisServer& master) {
  return {"--replicaof", "127.0.0.1", std::to_string(master.port()), "--repl-diskless-sync-delay", "0"};
}

class RateFaults : public RedisFaultTest {
 protected:
  RateLimiter limiter{openRates(server.port())};
  RateLimiter proxied{openRates(proxy.port())};
};

TEST_F(RateFaults, ForgottenScriptsAreLoadedAgainUnderLoad) {
  const RatePolicy policy = sms("1/day", {.burst = 2000});
  std::atomic<int> allowed = 0, outages = 0;
  std::atomic<bool> done = false;
  int flushed = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        RateLimiter own(openRates(server.port()), {.operationTimeout = 10s});
        for (int call = 0; call < 1000; ++call) {
          const Decision decision = own.take("k", policy);
          if (decision.allowed) ++allowed;
          if (decision.outage) ++outages;
        }
        done = true;
      });
    }
    while (!done) {
      server.command({"SCRIPT", "FLUSH"});
      ++flushed;
    }
  }
  EXPECT_GT(flushed, 5);
  EXPECT_EQ(allowed, 2000);
  EXPECT_EQ(outages, 0);
}

TEST_F(RateFaults, ARestartIsAnOutageAndThenALimitAgain) {
  const RatePolicy policy = sms("1/day", {.burst = 3});
  EXPECT_TRUE(limiter.take("k", policy, 3));
  server.kill();
  const Decision down = limiter.take("l", policy);
  EXPECT_FALSE(down.allowed);
  EXPECT_TRUE(down.outage);
  EXPECT_FALSE(limiter.take("k", policy).allowed);
  server.restart();
  ASSERT_TRUE(waitUntil([&] { return !limiter.take("l", policy).outage; }));
  int allowed = 0;
  while (limiter.take("m", policy)) ++allowed;
  EXPECT_EQ(allowed, 3);
}

TEST(RateDurability, WithAnAppendOnlyFileALimitSurvivesACrash) {
  RedisServer server({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
  const RatePolicy policy = sms("1/day", {.burst = 3});
  RateLimiter limiter(openRates(server.port()), {.operationTimeout = 10s});
  EXPECT_TRUE(limiter.take("k", policy, 2));
  server.restart();
  RateLimiter after(openRates(server.port()), {.operationTimeout = 10s});
  EXPECT_TRUE(after.take("k", policy));
  EXPECT_FALSE(after.take("k", policy));
}

TEST(RateFailover, ReplicatedUseIsKeptAndTheOldMasterAdmitsNothingMore) {
  const RedisServer master;
  const RedisServer replica({.arguments = replicaOf(master)});
  ASSERT_TRUE(waitUntil([&] {
    return replica.command({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
  }));
  const RatePolicy policy = sms("1/day", {.burst = 1000});
  std::atomic<int> allowed = 0;
  std::atomic<bool> failedOver = false;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        RateLimiter before(openRates(master.port()));
        while (!failedOver) {
          if (before.take("k", policy)) ++allowed;
        }
        RateLimiter after(openRates(replica.port()));
        for (int call = 0; call < 1000; ++call) {
          if (after.take("k", policy)) ++allowed;
        }
      });
    }
    EXPECT_TRUE(waitUntil([&] { return allowed > 200; }));
    // As an orderly failover does it: the master stops, the replica catches up and takes over.
    master.command({"CLIENT", "PAUSE", "60000", "WRITE"});
    const auto offset = [](const RedisServer& of, const char* field) {
      const std::string info = of.command({"INFO", "replication"});
      return std::stoll(info.substr(info.find(field) + std::string(field).size()));
    };
    EXPECT_TRUE(waitUntil(
        [&] { return offset(master, "master_repl_offset:") == offset(replica, "slave_repl_offset:"); }));
    replica.command({"REPLICAOF", "NO", "ONE"});
    master.command({"REPLICAOF", "127.0.0.1", std::to_string(replica.port())});
    failedOver = true;
  }
  EXPECT_EQ(allowed, 1000) << "exactly the limit, over both";
}

TEST(RateFailover, WhatWasNotReplicatedIsAllThatCanBeAdmittedTwice) {
  const RedisServer master;
  RedisServer replica({.arguments = replicaOf(master)});
  const auto linked = [&] {
    return replica.command({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
  };
  ASSERT_TRUE(waitUntil(linked));
  const RatePolicy policy = sms("1/day", {.burst = 100});
  RateLimiter before(openRates(master.port()), {.operationTimeout = 10s});
  EXPECT_TRUE(before.take("k", policy, 60));
  ASSERT_TRUE(waitUntil([&] { return replica.command({"EXISTS", ":lockkeeper:b::sms:k"}) == "1"; }));
  replica.pause();
  EXPECT_TRUE(before.take("k", policy, 30)) << "this the replica will not have";
  replica.resume();
  replica.command({"REPLICAOF", "NO", "ONE"});
  RateLimiter after(openRates(replica.port()), {.operationTimeout = 10s});
  const std::int64_t remaining = after.peek("k", policy).remaining;
  EXPECT_TRUE(remaining == 40 || remaining == 10) << remaining;
}

TEST_F(RateFaults, AServerThatHangsCostsOneCallItsTimeoutAndTheOthersNothing) {
  const RatePolicy closed = sms("1000/s"), open = sms("1000/s", {.outage = Outage::open});
  ASSERT_TRUE(limiter.take("k", closed));
  server.pause();
  const Instant started = now();
  EXPECT_FALSE(limiter.take("k", closed).allowed);
  EXPECT_LT(now() - started, operationTimeout + schedulingSlack);
  int asked = 0;
  for (const Instant end = in(300ms); now() < end;) {
    const Instant before = now();
    EXPECT_TRUE(limiter.take("k", open).allowed);
    if (now() - before > operationTimeout / 2) ++asked;
  }
  EXPECT_LE(asked, 3) << "they must not wait for the store each";
  server.resume();
  EXPECT_TRUE(waitUntil([&] { return !limiter.take("k", closed).outage; }));
}

TEST_F(RateFaults, WhoWaitsForAnothersQuestionWaitsNoLongerThanForHisOwn) {
  const RatePolicy policy = sms("1000/s");
  ASSERT_TRUE(limiter.take("k", policy));
  server.pause();
  std::atomic<int> outages = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, cost = 1 + thread % 3] {  // so that not all are one question
        const Instant started = now();
        if (limiter.take("k", policy, cost).outage) ++outages;
        EXPECT_LT(now() - started, operationTimeout + schedulingSlack);
      });
    }
  }
  EXPECT_EQ(outages, 8);
  server.resume();
}

TEST_F(RateFaults, AnAnswerThatWasCutAllowsNothing) {
  const RatePolicy policy = sms("1/day", {.burst = 100});
  ASSERT_TRUE(proxied.take("k", policy));
  std::size_t fired = 0;
  for (const std::size_t bytes : {1u, 5u, 20u, 30u}) {
    proxy.set({.kind = ProxyFault::Kind::cut, .bytes = bytes});
    const Decision decision = proxied.take("k", policy);
    fired += proxy.fired();
    EXPECT_FALSE(decision.allowed);
    EXPECT_TRUE(decision.outage);
    proxy.set({});
    EXPECT_TRUE(waitUntil([&] { return !proxied.take("other", policy).outage; }));
  }
  EXPECT_GE(fired, 4U);
  EXPECT_GE(limiter.peek("k", policy).remaining, 95) << "each lost answer cost one unit at most";
}

TEST(RateRights, AUserWithoutThemIsToldWhichAreNeeded) {
  const RedisServer server(
      {.users = {"user limiter on >let-me-in ~* -@all +@connection +info +evalsha +eval"}});
  StoreRegistry registry;
  redis::use(registry);
  const auto driver =
      registry.openRates("redis://limiter:let-me-in@127.0.0.1:" + std::to_string(server.port()));
  const RatePolicy policy = sms("1/day");
  RateCharge charge{.key = "k", .law = &policy.law()};
  try {
    driver->take({&charge, 1}, soon());
    FAIL() << "it was permitted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("+pexpireat"), std::string::npos) << error.what();
  }
  RateLimiter limiter(driver, {.operationTimeout = 10s});
  EXPECT_EQ(limiter.take("k", policy).outage, ErrorCode::config);
}

}  // namespace
}  // namespace lockkeeper::test
