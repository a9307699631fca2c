// The rate contract on every store that keeps limits.

#include <memory>
#include <string>

#include "database_server.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/rate_contract.h"
#include "postgres_server.h"
#include "redis_cluster.h"
#include "redis_server.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
using lockkeeper::testing::RateContract;
using lockkeeper::testing::RateFactory;
using lockkeeper::testing::rateFactoryName;
namespace {

/// All clients of one memory store are one object.
RateFactory memory(std::string name, std::shared_ptr<Clock> clock) {
  return {.name = std::move(name),
          .open = [driver = std::make_shared<MemoryDriver>(clock)](auto) { return driver; },
          .clock = clock,
          .clockIsTheStores = true};
}

RateFactory memoryOnFakeClock() {
  const auto clock = std::make_shared<FakeClock>();
  RateFactory factory = memory("FakeClock", clock);
  factory.advance = [clock](std::chrono::microseconds length) { clock->advance(length); };
  factory.arrivals = 250'000;
  return factory;
}

/// What the driver says that a user needs for limits, and nothing else.
constexpr const char* leastPrivileges =
    "user limiter on >let-me-in ~* -@all +@connection +info +time +get +set +del +pexpireat +llen +lindex "
    "+ltrim "
    "+rpush +eval +evalsha";

RateFactory redis(const char* name, RedisOptions options, std::string login, int arrivals) {
  // The server starts with the first client, lives as long as the factory, and serves all of its tests.
  const auto server = std::make_shared<std::unique_ptr<RedisServer>>();
  const auto open = [options, login, server](std::shared_ptr<Clock> clock) {
    if (!*server) *server = std::make_unique<RedisServer>(options);
    StoreRegistry registry;
    lockkeeper::redis::use(registry);
    Environment environment;
    environment.clock = std::move(clock);
    return registry.openRates("redis://" + login + "127.0.0.1:" + std::to_string((*server)->port()),
                              environment);
  };
  return {.name = name, .open = open, .arrivals = arrivals};
}

RateFactory redisCluster() {
  const auto cluster = std::make_shared<std::unique_ptr<RedisCluster>>();
  const auto open = [cluster](std::shared_ptr<Clock> clock) {
    if (!*cluster)
      *cluster = std::make_unique<RedisCluster>(
          3, 0, RedisOptions{.arguments = {"--cluster-node-timeout", "10000"}});
    StoreRegistry registry;
    lockkeeper::redis::use(registry);
    Environment environment;
    environment.clock = std::move(clock);
    return registry.openRates((*cluster)->uri(), environment);
  };
  return {.name = "RedisCluster", .open = open, .commonTag = "{tag}", .arrivals = 2000};
}

/// As a user of the database who may do what the driver says that it needs, and nothing else.
RateFactory mysql(const char* name, Brand brand, std::string scheme) {
  const auto server = std::make_shared<std::unique_ptr<DatabaseServer>>();
  const auto open = [brand, scheme, server](std::shared_ptr<Clock> clock) {
    if (!*server) {
      *server = std::make_unique<DatabaseServer>(
          brand, std::vector<std::string>{"--innodb-flush-log-at-trx-commit=2"});
      (*server)->execute("CREATE DATABASE limits");
      (*server)->execute("CREATE USER 'limiter'@'127.0.0.1' IDENTIFIED BY 'let-me-in'");
      (*server)->execute("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON limits.* TO 'limiter'@'127.0.0.1'");
    }
    StoreRegistry registry;
    lockkeeper::mysql::use(registry);
    Environment environment;
    environment.clock = std::move(clock);
    return registry.openRates(scheme + "://limiter:let-me-in@127.0.0.1:" + std::to_string((*server)->port()) +
                                  "/limits?createTable=true",
                              environment);
  };
  return {.name = name, .open = open, .arrivals = 5000};
}

/// As a user of the database who may do what the driver says that it needs, and nothing else.
RateFactory postgres() {
  const auto server = std::make_shared<std::unique_ptr<PostgresServer>>();
  const auto open = [server](std::shared_ptr<Clock> clock) {
    if (!*server) {
      *server = std::make_unique<PostgresServer>();
      (*server)->makeLocks();
    }
    StoreRegistry registry;
    lockkeeper::postgres::use(registry);
    Environment environment;
    environment.clock = std::move(clock);
    return registry.openRates((*server)->uri("postgres+version"), environment);
  };
  return {.name = "Postgres", .open = open, .arrivals = 5000};
}

// Made once: GoogleTest asks again for each test, and each answer would start servers of its own.
const std::vector<RateFactory>& stores() {
  static const std::vector<RateFactory> factories{
      memoryOnFakeClock(), memory("SystemClock", systemClock()), redis("Redis", {}, "", 20'000),
      // The same scripts, which only have to be permitted.
      redis("RedisAclUser", {.users = {leastPrivileges}}, "limiter:let-me-in@", 2000), redisCluster(),
      mysql("Mariadb", Brand::mariadb, "mysql+getlock"), mysql("Mysql", Brand::mysql, "mysql+version"),
      postgres()};
  return factories;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Stores, RateContract, ::testing::ValuesIn(stores()), rateFactoryName);

}  // namespace lockkeeper::test
