// One Redis through the whole of core, beside bare hiredis on the same server in the same run: with the
// fewest commands that are a lock at all, and with the fewest that keep what ours promises.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bare_redis.h"
#include "contest.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "raw_redis.h"
#include "redis_server.h"
#ifdef REDIS_PLUS_PLUS_VERSION
#include <sw/redis++/redis++.h>
#endif

namespace lockkeeper {
namespace {

LockManager open(const test::RedisServer& server, const std::string& parameters) {
  StoreRegistry registry;
  redis::use(registry);
  return LockManager(registry.open(server.uri() + parameters));
}

bench::Way hiredis(const test::RedisServer& server) {
  return {"hiredis", [&server](int thread) {
            return [redis = std::make_shared<bench::RawRedis>(server.port()),
                    key = "bare:" + std::to_string(thread)] { redis->pair(key); };
          }};
}

#ifdef REDIS_PLUS_PLUS_VERSION
// A pool with a connection for each thread, and the commands of hiredis.
bench::Way redisPlusPlus(const test::RedisServer& server) {
  sw::redis::ConnectionOptions connection;
  connection.host = "127.0.0.1";
  connection.port = server.port();
  sw::redis::ConnectionPoolOptions pool;
  pool.size = 64;
  const auto redis = std::make_shared<sw::redis::Redis>(connection, pool);
  const std::string release = redis->script_load(bench::RawRedis::releaseScript);
  return {"redis-plus-plus " REDIS_PLUS_PLUS_VERSION, [redis, release](int thread) {
            return [redis, release, key = "plus:" + std::to_string(thread)] {
              const std::string token = "0123456789abcdef0123456789abcdef";
              if (!redis->set(key, token, std::chrono::seconds{30}, sw::redis::UpdateType::NOT_EXIST) ||
                  redis->evalsha<long long>(release, {key}, {token}) != 1)
                throw std::runtime_error("the lock was not taken");
            };
          }};
}
#endif

// As a program does that lets its Lock go out of scope: the release's answer is not waited for.
bench::Way scopes(std::string name, LockManager& locks) {
  return {std::move(name), [&locks](int thread) {
            return [&locks, key = "scope:" + std::to_string(thread)] {
              if (!locks.tryLock(key)) throw std::runtime_error("the lock was not taken");
            };
          }};
}

bench::Way oneKey(LockManager& locks) {
  return {"one key for all", [&locks](int) {
            return [&locks] { const auto held = locks.lock("hot", {.waitFor = std::chrono::minutes{1}}); };
          }};
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  using bench::Connections, bench::Promise;
  const test::RedisServer server;
  LockManager plain = open(server, "?fence=off"), fenced = open(server, "");
  const std::string plainPair = "no fence", fencedPair = "with a fence", posted = "with a fence, not awaited",
                    bare = "hiredis", same = "bare, same promise, ", one = "bare, one connection, ";
  std::vector<bench::Way> ways{hiredis(server), bench::pairs(plainPair, plain),
                               bench::pairs(fencedPair, fenced), scopes(posted, fenced)};
#ifdef REDIS_PLUS_PLUS_VERSION
  ways.insert(ways.begin() + 1, redisPlusPlus(server));
#endif
  const auto addBare = [&](const std::string& prefix, Connections connections) {
    ways.push_back(bench::bareWay(prefix + plainPair, server.port(), Promise::lock, connections));
    ways.push_back(bench::bareWay(prefix + fencedPair, server.port(), Promise::fencedLock, connections));
  };
  bench::Contest contest("redis", "redis-server", count, arguments);

  addBare(same, Connections::oneForEachThread);
  contest.measure(
      1, ways,
      {{.ours = plainPair, .beside = bare, .server = 1.0, .client = 1.0, .bare = {same + plainPair}},
       {.ours = fencedPair, .beside = bare, .server = 1.15, .client = 1.1, .bare = {same + fencedPair}},
       {.ours = posted,
        .beside = bare,
        .server = bench::shown,
        .client = bench::shown,
        .time = bench::shown}});

  addBare(one, Connections::oneForAll);
  const std::vector<std::string> barePlain{same + plainPair, one + plainPair},
      bareFenced{same + fencedPair, one + fencedPair};
  const std::string turns = "bare, one key for all";
  ways.push_back(oneKey(fenced));
  ways.push_back(bench::bareTurns(turns, server.port()));
  contest.measure(
      16, ways,
      {{.ours = plainPair, .beside = bare, .server = 0.6, .client = 0.8, .bare = barePlain},
       {.ours = fencedPair,
        .beside = bare,
        .server = 0.9,
        .client = 0.85,
        .perSecond = 1.2,
        .bare = bareFenced},
       {.ours = "one key for all", .beside = bare, .server = 0.1, .client = 0.5, .bare = {turns}}});
  ways.resize(ways.size() - 2);
  contest.measure(64, ways,
                  {{.ours = plainPair, .beside = bare, .server = 0.4, .client = 0.7, .bare = barePlain},
                   {.ours = fencedPair, .beside = bare, .server = 0.6, .client = 0.75, .bare = bareFenced}});
  return 0;
}
