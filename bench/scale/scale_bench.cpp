// How cost grows on one Redis and on PostgreSQL: with locks that are held, with waiters of one key, with keys
// that are limited, and on Redis with members of a migration. Each size has a server of its own, so that all
// are there at the same time.

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "contest.h"
#include "line.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/migration/open.h"
#include "lockkeeper/migration/state_store.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

using namespace std::chrono_literals;

// What is said to cost the same with many as with few.
constexpr double theSame = 1.25;

StoreRegistry registry() {
  StoreRegistry made;
  redis::use(made);
  postgres::use(made);
  return made;
}

Instant soon() { return systemClock()->now() + 10s; }

/// A server of its own.
struct Server {
  std::string uri;
  std::function<double()> bytes;  ///< What it keeps takes so many.
};

Server startRedis() {
  const auto server = std::make_shared<test::RedisServer>();
  return {server->uri(), [server] {
            const std::string info = server->command({"INFO", "memory"}), field = "used_memory:";
            return std::stod(info.substr(info.find(field) + field.size()));
          }};
}

Server startPostgres() {
  const auto server = std::make_shared<test::PostgresServer>();
  server->makeLocks();
  return {server->uri("postgres+version"), [server] {
            server->execute("ANALYZE");  // As autovacuum does, which is off here.
            return std::stod(
                server->ask("SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND "
                            "relname LIKE 'lockkeeper%'"));
          }};
}

struct Store {
  std::string title;      ///< Of its contests.
  std::string processes;  ///< As bench::serversOf() has it.
  std::function<Server()> start;
  int mostWaiters;
};

void printBytes(const std::string& what, double bytes) {
  bench::print({.name = what + ": bytes of each, server", .floor = "", .measured = bench::figure(bytes, "")});
}

/// Calls `make` with each number below `count`, from 16 threads.
template <class Make>
void makeMany(int count, Make make) {
  constexpr int threads = 16;
  std::vector<std::jthread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      for (int i = thread; i < count; i += threads) make(i, thread);
    });
  }
}

std::string inWords(int count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

void heldLocks(const Store& store, int count, char** arguments) {
  const std::string title = store.title + ", held locks";
  struct Size {
    Size(const Store& store, const std::string& title, int held) : server(store.start()) {
      const double before = server.bytes();
      makeMany(held, [&](int i, int thread) {
        others[static_cast<std::size_t>(thread)].push_back(
            locks.lock("held:" + std::to_string(i), {.ttl = 10min}));
      });
      // Of few locks, the connections' buffers would be most.
      if (held >= 100'000) printBytes(title + ", " + inWords(held), (server.bytes() - before) / held);
    }
    Server server;
    LockManager locks{registry().open(server.uri)};
    std::vector<Lock> others[16];
  };
  Size one(store, title, 1), thousand(store, title, 1000), many(store, title, 100'000);
  bench::Contest contest(title, store.processes, count, arguments);
  const std::string first = "a pair beside 1";
  contest.measure(1,
                  {bench::pairs(first, one.locks), bench::pairs("a pair beside 1,000", thousand.locks),
                   bench::pairs("a pair beside 100,000", many.locks)},
                  {{.ours = "a pair beside 1,000", .beside = first, .server = theSame, .client = theSame},
                   {.ours = "a pair beside 100,000", .beside = first, .server = theSame, .client = theSame}});
}

// Each thread waits in the queue of the server, as a process of its own does, takes its turn and waits again.
void waiters(const Store& store, int count, char** arguments) {
  for (const int threads : {1, 10, 100, 1000}) {
    if (threads > store.mostWaiters) continue;
    const Server server = store.start();
    const auto driver = registry().open(server.uri);
    const bench::Way turns{
        "a turn", [&](int) {
          return
              [&, claim = Claim{.key = "hot", .token = Token::generate(*systemRandom()), .owner = "bench"}] {
                const AcquireRequest request{.claim = claim, .ttl = 30s, .deadline = soon()};
                const auto got = capability<Waitable>(*driver)->acquireWaiting(request, 1min, {});
                if (!std::holds_alternative<Granted>(got)) throw std::runtime_error("no turn in a minute");
                (void)driver->release(claim, soon());
              };
        }};
    bench::Contest(store.title + ", waiters of a key", store.processes, count, arguments)
        .measure(threads, {turns}, {});
  }
}

void limitedKeys(const Store& store, int count, char** arguments) {
  constexpr int million = 1'000'000;
  static const RatePolicy policy("scale", {.rate = {1000, 24h}, .burst = 1'000'000});
  const std::string title = store.title + ", limited keys";
  const Server few = store.start(), many = store.start();
  RateLimiter ofFew(registry().openRates(few.uri)), ofMany(registry().openRates(many.uri));
  const double before = many.bytes();
  makeMany(million, [&](int i, int) { (void)ofMany.take("user:" + std::to_string(i), policy); });
  printBytes(title + ", 1,000,000", (many.bytes() - before) / million);
  const auto decisions = [](std::string name, RateLimiter& limiter, int keys) {
    return bench::Way{std::move(name), [&limiter, keys](int) {
                        return [&limiter, keys, i = 0]() mutable {
                          i = (i + 7919) % keys;
                          (void)limiter.take("user:" + std::to_string(i), policy);
                        };
                      }};
  };
  bench::Contest contest(title, store.processes, count, arguments);
  contest.measure(1,
                  {decisions("a decision on one of 10", ofFew, 10),
                   decisions("a decision on one of 1,000,000", ofMany, million)},
                  {{.ours = "a decision on one of 1,000,000",
                    .beside = "a decision on one of 10",
                    .server = 1.5,  // its keys are not in the processor's caches
                    .client = theSame}});
}

void members(int count, char** arguments) {
  struct Size {
    explicit Size(int members) {
      const double before = server.bytes();
      for (int i = 0; i < members; ++i) beat(i);
      if (members > 1)
        printBytes("scale, members of a migration, " + inWords(members), (server.bytes() - before) / members);
    }
    void beat(int i) {
      migration::Member self;
      self.id = "member-" + std::to_string(i);
      self.labels = {"host-" + std::to_string(i) + ":4711"};
      self.lease = self.locksEndAfter = 10min;
      store.heartbeat(self, known, soon());
    }
    Server server = startRedis();
    migration::StateStore store{
        migration::openStateStore(registry(), {.from = "memory:", .to = server.uri, .stateStore = {}}),
        "fleet"};
    migration::MigrationState known{};
  };
  Size one(1), thousand(1000);
  const auto beats = [](std::string name, Size& size) {
    return bench::Way{std::move(name), [&size](int) { return [&size] { size.beat(0); }; }};
  };
  const auto reads = [](std::string name, Size& size) {
    return bench::Way{std::move(name), [&size](int) { return [&size] { (void)size.store.read(soon()); }; }};
  };
  bench::Contest contest("scale, members of a migration", "redis-server", count, arguments);
  contest.measure(
      1,
      {beats("a heartbeat of 1", one), beats("a heartbeat of 1,000", thousand), reads("a look at 1", one),
       reads("a look at 1,000", thousand)},
      {{.ours = "a heartbeat of 1,000", .beside = "a heartbeat of 1", .server = theSame, .client = theSame},
       {.ours = "a look at 1,000", .beside = "a look at 1", .server = bench::shown, .client = bench::shown}});
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  // A waiter on PostgreSQL writes once a second that it is still there: a thousand of them are too many for
  // the connections of one process.
  for (const Store& store : {Store{"scale", "redis-server", startRedis, 1000},
                             Store{"scale, PostgreSQL", "bin/postgres", startPostgres, 100}}) {
    heldLocks(store, count, arguments);
    waiters(store, count, arguments);
    limitedKeys(store, count, arguments);
  }
  members(count, arguments);
  return 0;
}
