// Redlock on five servers through the whole of core, beside bare hiredis on one of them and on all, in the
// same run.

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "contest.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "raw_redis.h"
#include "redis_server.h"
#include "redlock_uri.h"
#include "wait_until.h"

namespace lockkeeper {
namespace {

using Servers = std::array<test::RedisServer, 5>;

// How many of the nodes are left out of the rounds since they do not answer.
struct LeftOut final : Listener {
  void on(const Event& event) override {
    if (event.kind == EventKind::nodeAsked && event.node == NodeOutcome::leftOut) ++count;
  }
  std::atomic<int> count{0};
};

LockManager open(const Servers& servers, const std::shared_ptr<Listener>& listener = nullptr) {
  StoreRegistry registry;
  redis::use(registry);
  ManagerOptions options;
  options.environment.listener = listener;
  const std::string uri = test::redlockUri(servers, "restartGuard=off");  // they have only just started
  return LockManager(registry.open(uri, options.environment), options);
}

/// Two of five stop, and have been found out; two of five others are killed.
struct Incomplete {
  Servers silent;
  Servers refusing;
  std::shared_ptr<LeftOut> leftOut = std::make_shared<LeftOut>();
  LockManager twoSilent = open(silent, leftOut);
  LockManager twoRefusing = open(refusing);

  Incomplete() {
    (void)twoSilent.tryLock("all are there");
    (void)twoRefusing.tryLock("all are there");
    for (const std::size_t node : {1U, 3U}) {
      silent[node].pause();
      refusing[node].kill();
    }
    const bool found = test::waitUntil([&] {
      leftOut->count = 0;
      (void)twoSilent.tryLock("two are not");
      return leftOut->count == 4;  // in the round that takes and in the one that releases
    });
    if (!found) throw std::runtime_error("the stopped nodes are still asked");
  }
};

bench::Way bareOne(const Servers& servers) {
  return {"hiredis, one server", [&servers](int thread) {
            return [redis = std::make_shared<bench::RawRedis>(servers[0].port()),
                    key = "one:" + std::to_string(thread)] { redis->pair(key); };
          }};
}

// As a client does that has no library: plain commands, to all five at once.
bench::Way bareFive(const Servers& servers) {
  const auto begin = [&servers](int thread) {
    auto all = std::make_shared<std::vector<bench::RawRedis>>();
    for (const test::RedisServer& each : servers) all->emplace_back(each.port());
    return [all, key = "five:" + std::to_string(thread)] { bench::RawRedis::pairOnAll(*all, key); };
  };
  return {.name = "hiredis, five servers", .begin = begin, .servers = 5};
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  const Servers healthy;
  Incomplete incomplete;
  LockManager redlock = open(healthy);
  bench::Way five = bench::pairs("five servers", redlock);
  five.servers = 5;
  const std::vector<bench::Way> ways{bareOne(healthy), bareFive(healthy), five,
                                     bench::pairs("two silent", incomplete.twoSilent),
                                     bench::pairs("two down", incomplete.twoRefusing)};
  bench::Contest contest("redlock", "redis-server", count, arguments);
  contest.measure(
      1, ways,
      {{.ours = "five servers", .beside = "hiredis, five servers", .client = bench::shown, .time = 0.75},
       {.ours = "five servers",
        .beside = "hiredis, one server",
        .server = 1.0,
        .bare = {"hiredis, five servers"}},
       {.ours = "hiredis, five servers", .beside = "hiredis, one server", .server = bench::shown},
       {.ours = "two silent", .beside = "five servers", .time = 1.5},
       {.ours = "two down", .beside = "five servers", .time = 1.6}});
  contest.measure(
      16, ways,
      {{.ours = "five servers", .beside = "hiredis, five servers", .client = bench::shown, .time = 0.5},
       {.ours = "five servers",
        .beside = "hiredis, one server",
        .server = 1.0,
        .bare = {"hiredis, five servers"}},
       {.ours = "hiredis, five servers", .beside = "hiredis, one server", .server = bench::shown},
       {.ours = "two silent", .beside = "five servers", .time = bench::shown}});
  return 0;
}
