// Rate limits as a real Redis keeps them: in little room, and no longer than needed.

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "advanced_clock.h"
#include "free_port.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/rate_limiter.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<RateDriver> openRates(const RedisServer& server, const std::string& scheme = "redis") {
  return capability<RateDriver>(openRedis(server.port(), "", scheme));
}

RatePolicy limit(RateKind kind, std::string_view rate, std::int64_t burst = 0) {
  return RatePolicy("p", {.kind = kind, .rate = Rate::parse("rate", rate), .burst = burst});
}

RateOutcome take(RateDriver& driver, std::string_view key, const RatePolicy& policy, std::int64_t cost = 1,
                 Instant deadline = soon()) {
  RateCharge charge{.key = key, .law = &policy.law(), .cost = cost};
  driver.take({&charge, 1}, deadline);
  return charge.outcome;
}

TEST(RateStore, ABucketTakesAtMost110Bytes) {
  const RedisServer server;
  RateLimiter limiter(openRates(server), {.keyNamespace = "shop", .operationTimeout = 10s});
  // All at once, so that the bucket is not full again before we look.
  const auto bytes = [&](std::string_view rate, std::int64_t burst) {
    const RatePolicy policy("sms", {.rate = Rate::parse("rate", rate), .burst = burst});
    limiter.reset("+4917012345678", policy);
    EXPECT_TRUE(limiter.take("+4917012345678", policy, burst));
    return std::stoi(server.command({"MEMORY", "USAGE", ":lockkeeper:b:shop:sms:+4917012345678"}));
  };
  for (const std::string_view rate : {"2/s", "100/min", "1/day"}) EXPECT_LE(bytes(rate, 10), 110) << rate;
  EXPECT_LE(bytes("1000000/s", 10'000'000), 110);
  // A unit of no whole number of microseconds is kept as a text.
  EXPECT_LE(bytes("3/s", 10), 110 + 32);
  EXPECT_LE(bytes("999983/s", 10'000'000), 110 + 32);
}

TEST(RateStore, EveryStateLivesUntilItMeansNothingAndNoLonger) {
  const RedisServer server;
  const auto driver = openRates(server);
  int looked = 0;
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    const char letter = kind == RateKind::tokenBucket ? 'b' : kind == RateKind::slidingWindow ? 'l' : 'w';
    for (const std::string_view rate : {"1000/s", "7/30ms", "2/h", "1/366d"}) {
      const RatePolicy policy = limit(kind, rate);
      const std::string key = std::string(toString(kind)) + std::string(rate);
      const RateOutcome outcome = take(*driver, key, policy);
      ASSERT_EQ(outcome.granted, 1);
      const std::int64_t end = outcome.storeTime + outcome.resetAfter.count();
      const std::string told =
          server.command({"PEXPIRETIME", std::string(reservedMark) + letter + ":" + key});
      if (told.starts_with("(error)"))
        GTEST_SKIP() << "only Redis 7 and later tell when a key ends: " << told;
      const std::int64_t expires = std::stoll(told);
      if (expires == -2) continue;  // gone before we looked
      ++looked;
      EXPECT_GE(expires * 1000, end) << key;
      EXPECT_LT(expires * 1000, end + 1000 + (isBucket(kind) ? 1 : 0)) << key;
    }
  }
  EXPECT_GE(looked, 6);
  EXPECT_TRUE(waitUntil([&] { return server.command({"KEYS", "*ms*"}).empty(); })) << "unused keys must go";
}

TEST(RateStore, WhatIsLeftAfterARefundStillGoesByItself) {
  const RedisServer server;
  RateLimiter limiter(openRates(server), {.operationTimeout = 10s});
  const auto left = [&](RateKind kind) {
    const RatePolicy policy("p", {.kind = kind, .rate = {10, 24h}});
    EXPECT_TRUE(limiter.take("k", policy, 2));
    EXPECT_TRUE(limiter.refund("k", policy));
    const char letter = kind == RateKind::tokenBucket ? 'b' : kind == RateKind::slidingWindow ? 'l' : 'w';
    return std::stoll(server.command({"PTTL", std::string(":lockkeeper:") + letter + "::p:k"}));
  };
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::slidingWindow, RateKind::fixedWindow}) {
    EXPECT_GT(left(kind), 0) << toString(kind);
  }
}

TEST(RateStore, AClockThatWentBackRefusesUntilItHasCaughtUp) {
  const RedisServer server;
  const auto driver = openRates(server);
  const RatePolicy policy = limit(RateKind::tokenBucket, "1000/s", 10);
  const std::int64_t now = take(*driver, "k", policy).storeTime;
  // As if the server had written this before its clock was set back by an hour.
  const std::string ahead = std::to_string(now + 3'600'000'000);
  server.command({"SET", ":lockkeeper:b:k", ahead});
  const RateOutcome refused = take(*driver, "k", policy);
  EXPECT_EQ(refused.granted, 0);
  EXPECT_GT(refused.retryAfter, 59min);
  server.command({"SET", ":lockkeeper:w:k", ahead + ":5"});
  EXPECT_EQ(take(*driver, "k", limit(RateKind::fixedWindow, "10/s")).remaining, 4)
      << "counted in the later window";
  server.command({"RPUSH", ":lockkeeper:l:k", ahead});
  EXPECT_EQ(take(*driver, "k", limit(RateKind::slidingWindow, "10/s")).remaining, 8);
  EXPECT_EQ(server.command({"LINDEX", ":lockkeeper:l:k", "-1"}), ahead) << "the list stays sorted";
}

TEST(RateStore, LocksAndLimitsOfOneNameDoNotMeet) {
  const RedisServer server;
  const auto locks = openRedis(server.port());
  const RatePolicy policy = limit(RateKind::tokenBucket, "1/day");
  const Claimant claimant{};
  ASSERT_TRUE(granted(locks->acquire(claimant.request())));
  EXPECT_EQ(take(*capability<RateDriver>(*locks), claimant.key, policy).granted, 1);
  int listed = 0;
  const auto visit = [&](std::string_view key, const Holder&) {
    EXPECT_EQ(key, claimant.key);
    ++listed;
    return true;
  };
  capability<Browsable>(*locks)->list("", visit, soon());
  EXPECT_EQ(listed, 1) << "limits are no locks";
}

// Takes one unit of each of 32 keys on as many threads, again and again, and counts what came of the calls.
class Crowd {
 public:
  explicit Crowd(RateDriver& driver, int rounds = 50, std::chrono::seconds ahead = 0s) : ahead_(ahead) {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 32; ++thread) {
      threads.emplace_back([&, key = "key:" + std::to_string(thread)] {
        for (int round = 0; round < rounds; ++round) ask(driver, key);
      });
    }
  }

  int granted() const { return granted_; }
  std::map<std::string, int> refused() const { return refused_; }  // what was said, and how often

 private:
  void ask(RateDriver& driver, const std::string& key) {
    try {
      granted_ += static_cast<int>(take(driver, key, perDay, 1, soon() + ahead_).granted);
    } catch (const Error& error) {
      const std::lock_guard guard(mutex_);
      ++refused_[error.what()];
    }
  }

  const RatePolicy perDay = limit(RateKind::tokenBucket, "20/day");
  const std::chrono::seconds ahead_;  // the driver's clock of the machine's
  std::atomic<int> granted_ = 0;
  std::mutex mutex_;
  std::map<std::string, int> refused_;
};

int scriptCalls(const RedisServer& server) {
  const std::string figures = server.command({"INFO", "commandstats"});
  const std::string evalsha = "cmdstat_evalsha:calls=";
  return std::stoi(figures.substr(figures.find(evalsha) + evalsha.size()));
}

TEST(RateCrowd, CallersOfManyKeysAreServedTogetherAndEachExactly) {
  const RedisServer server;
  const auto driver = openRates(server);
  const Crowd crowd(*driver);
  EXPECT_EQ(crowd.granted(), 32 * 20);
  EXPECT_TRUE(crowd.refused().empty());
  EXPECT_LT(scriptCalls(server), 32 * 50);  // how many fewer depends on who runs when
}

TEST(RateCrowd, AKeyOfAnotherTypeFailsAloneAndTheOthersAreExact) {
  const RedisServer server;
  server.command({"RPUSH", std::string(reservedMark) + "b:key:7", "foreign"});
  const auto driver = openRates(server);
  const Crowd crowd(*driver);
  EXPECT_EQ(crowd.granted(), 31 * 20);
  ASSERT_EQ(crowd.refused().size(), 1U);
  EXPECT_NE(crowd.refused().begin()->first.find("WRONGTYPE"), std::string::npos)
      << crowd.refused().begin()->first;
  EXPECT_EQ(crowd.refused().begin()->second, 50);
  EXPECT_LT(scriptCalls(server), 32 * 50);  // how many fewer depends on who runs when
}

TEST(RateCrowd, AKeyWithANumberThatIsNoTimeFailsAloneAndTheOthersAreExact) {
  // The first one is 2^53, the first number that no limit writes.
  for (const char* const foreign : {"9007199254740992", "20000000000000000"}) {
    const RedisServer server;
    server.command({"SET", std::string(reservedMark) + "b:key:7", foreign});
    const auto driver = openRates(server);
    const Crowd crowd(*driver);
    EXPECT_EQ(crowd.granted(), 31 * 20) << foreign;
    ASSERT_EQ(crowd.refused().size(), 1U) << foreign;
    EXPECT_EQ(crowd.refused().begin()->second, 50) << crowd.refused().begin()->first;
    EXPECT_NE(crowd.refused().begin()->first.find("no limit"), std::string::npos)
        << crowd.refused().begin()->first;
  }
}

// Any kind, taken or looked at, alone or with others. What a limit can have written is believed, though its
// time is far.
TEST(RateStore, ANumberThatNoLimitWritesIsRefusedAndGoneAfterAReset) {
  const RedisServer server;
  const auto driver = openRates(server);
  const RatePolicy bucket = limit(RateKind::tokenBucket, "2/s"), log = limit(RateKind::slidingWindow, "2/s"),
                   window = limit(RateKind::fixedWindow, "2/s");
  server.command({"SET", ":lockkeeper:b:k", "20000000000000000"});
  server.command({"RPUSH", ":lockkeeper:l:k", "20000000000000000"});
  server.command({"SET", ":lockkeeper:w:k", "20000000000000000:1"});
  for (const RatePolicy* policy : {&bucket, &log, &window}) {
    const char* const kind = toString(policy->law().kind);
    std::array both{RateCharge{.key = "k", .law = &policy->law()},
                    RateCharge{.key = "other", .law = &policy->law()}};
    EXPECT_THROW(take(*driver, "k", *policy), ProtocolError) << kind;
    EXPECT_THROW(driver->take(both, soon()), ProtocolError) << kind;
    EXPECT_THROW(driver->peek(both, soon()), ProtocolError) << kind;
    driver->reset("k", policy->law().kind, soon());
    EXPECT_EQ(take(*driver, "k", *policy).granted, 1) << kind;
  }
  server.command({"SET", ":lockkeeper:b:k", "9007199254740991"});
  EXPECT_GT(take(*driver, "k", bucket).retryAfter, 24h * 365 * 100);
}

// Whatever is asked, alone or with others: the fault is the key's, and no outage of the store.
TEST(RateStore, ATextThatNoLimitWritesIsRefusedAsAKeyOfAnotherTypeIs) {
  const RedisServer server;
  const auto driver = openRates(server);
  const RatePolicy bucket = limit(RateKind::tokenBucket, "2/s"), log = limit(RateKind::slidingWindow, "2/s"),
                   window = limit(RateKind::fixedWindow, "2/s");
  const auto refuses = [&](const RatePolicy& policy) {
    std::array both{RateCharge{.key = "k", .law = &policy.law()},
                    RateCharge{.key = "other", .law = &policy.law()}};
    EXPECT_THROW(take(*driver, "k", policy), ConfigError);
    EXPECT_THROW(driver->take(both, soon()), ConfigError);
    EXPECT_THROW(driver->peek(both, soon()), ConfigError);
    EXPECT_THROW(driver->refund({.key = "k", .law = &policy.law(), .cost = 1}, soon()), ConfigError);
  };
  for (const char* const foreign : {"garbage", "", "1:2:3", "1e300", "nan"}) {
    SCOPED_TRACE(foreign);
    server.command({"SET", ":lockkeeper:b:k", foreign});
    server.command({"SET", ":lockkeeper:w:k", foreign});
    refuses(bucket);
    refuses(window);
  }
  server.command({"RPUSH", ":lockkeeper:l:k", "garbage"});
  refuses(log);
  server.command({"DEL", ":lockkeeper:b:k", ":lockkeeper:w:k", ":lockkeeper:l:k"});
  server.command({"RPUSH", ":lockkeeper:b:k", "1"});
  server.command({"RPUSH", ":lockkeeper:w:k", "1"});
  server.command({"SET", ":lockkeeper:l:k", "1"});
  for (const RatePolicy* policy : {&bucket, &log, &window}) refuses(*policy);
}

TEST(RateCrowd, AKeyOfAnotherTypeIsNoOutageOfTheStoreForALimiter) {
  const RedisServer server;
  server.command({"RPUSH", std::string(reservedMark) + "b::p:7", "foreign"});
  RateLimiter limiter(openRates(server), {.operationTimeout = 10s});
  const RatePolicy policy = limit(RateKind::tokenBucket, "20/day");
  std::atomic<int> outages = 0, allowed = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 16; ++thread) {
      threads.emplace_back([&, key = std::to_string(thread)] {
        for (int round = 0; round < 50; ++round) {
          const Decision decision = limiter.take(key, policy);
          if (decision.outage && key != "7") ++outages;
          if (decision.allowed) ++allowed;
        }
      });
    }
  }
  EXPECT_EQ(outages, 0);
  EXPECT_EQ(allowed, 15 * 20);
}

TEST(RateCrowd, AKeyThatMayNotBeUsedFailsAloneAndTheOthersAreExact) {
  const RedisServer server({.users = {"user limiter on >let-me-in +@all ~*:key:1* ~*:key:2*"}});
  StoreRegistry registry;
  redis::use(registry);
  const auto driver =
      registry.openRates("redis://limiter:let-me-in@127.0.0.1:" + std::to_string(server.port()));
  const Crowd crowd(*driver);
  const int allowed = 22;  // 1, 10 to 19, 2, 20 to 29
  EXPECT_EQ(crowd.granted(), allowed * 20);
  int refused = 0;
  for (const auto& [text, times] : crowd.refused()) refused += times;
  EXPECT_EQ(refused, (32 - allowed) * 50);
}

TEST(RateCrowd, AfterAKeyThatMayNotBeUsedEachAsksForItselfForAMinute) {
  const RedisServer server({.users = {"user limiter on >let-me-in +@all ~*:key:1*"}});
  FaultProxy proxy(server.port());
  StoreRegistry registry;
  redis::use(registry);
  const auto clock = std::make_shared<AdvancedClock>();
  Environment environment;
  environment.clock = clock;
  const auto driver =
      registry.openRates("redis://limiter:let-me-in@127.0.0.1:" + std::to_string(proxy.port()), environment);
  EXPECT_FALSE(Crowd(*driver).refused().empty());
  server.command({"ACL", "SETUSER", "limiter", "~*"});

  const int before = scriptCalls(server);
  EXPECT_TRUE(Crowd(*driver).refused().empty());
  EXPECT_EQ(scriptCalls(server) - before, 32 * 50);

  proxy.set({.kind = ProxyFault::Kind::delay, .pause = 250ms});
  const Instant began = systemClock()->now();
  EXPECT_TRUE(Crowd(*driver, 2).refused().empty());
  EXPECT_LT(systemClock()->now() - began, 32 * 250ms) << "all at once: one after the other took 64 pauses";
  proxy.passThrough();

  clock->ahead = 61s;
  const int apart = scriptCalls(server);
  EXPECT_TRUE(Crowd(*driver, 50, 61s).refused().empty());
  EXPECT_LT(scriptCalls(server) - apart, 32 * 50) << "together again";
}

std::unique_ptr<RedisServer> clusterOfOne() {
  auto server = std::make_unique<RedisServer>(RedisOptions{.cluster = true});
  std::vector<std::string> addSlots{"CLUSTER", "ADDSLOTS"};
  for (int slot = 0; slot < 16384; ++slot) addSlots.push_back(std::to_string(slot));
  server->command(addSlots);
  EXPECT_TRUE(waitUntil([&] {
    return server->command({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
  }));
  return server;
}

TEST(RateCluster, CallersOfManyKeysAreServedThoughNoCallMayHaveTheKeysOfTwo) {
  const auto server = clusterOfOne();
  const auto driver = openRates(*server, "redis+cluster");
  const Crowd crowd(*driver);
  EXPECT_EQ(crowd.granted(), 32 * 20);
  EXPECT_TRUE(crowd.refused().empty());
  EXPECT_EQ(server->command({"INFO", "errorstats"}).find("CROSSSLOT"), std::string::npos)
      << "it was tried nevertheless";
}

TEST(RateCluster, KeysOfOneCallNeedOneHashTag) {
  const auto server = clusterOfOne();
  const auto driver = openRates(*server, "redis+cluster");
  const RatePolicy policy = limit(RateKind::tokenBucket, "1/day");
  const auto both = [&](std::string_view one, std::string_view two) {
    std::array charges{RateCharge{.key = one, .law = &policy.law()},
                       RateCharge{.key = two, .law = &policy.law()}};
    driver->take(charges, soon());
    return charges[0].outcome.granted + charges[1].outcome.granted;
  };
  EXPECT_EQ(both("shop:user:{7}", "shop:address:{7}:10.0.0.1"), 2);
  try {
    both("shop:user:7", "shop:address:10.0.0.1");
    FAIL() << "keys of different slots were taken together";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("hash tag"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lockkeeper::test
