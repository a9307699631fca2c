// One hot key that several processes take in turn, on Redis and on PostgreSQL: how long a released key lies
// idle until its next holder starts, what a turn costs the server, and whether everybody gets as many. Beside
// it, the round trip of a connection that is idle as long as a key is held, as those of waiters are. What
// waiters cost Redis while nothing happens, too.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bare_postgres.h"
#include "line.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "processor_time.h"
#include "raw_postgres.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Who contends for the key, and how.
struct Contest {
  int processes = 8;
  int threads = 1;  // of each
  milliseconds hold{1};
  std::chrono::seconds length{5};

  std::string name() const {
    return std::to_string(processes) + " processes x " + std::to_string(threads) + ", hold " +
           std::to_string(hold.count()) + " ms";
  }
};

constexpr std::size_t mostTurns = 1 << 18;
constexpr int mostProcesses = 256;
constexpr double mostTrips = 4;  // from a release to the next holder

std::int64_t nanos() { return systemClock()->now().time_since_epoch().count(); }

// What the processes share. Only the holder of the lock writes a turn.
struct Shared {
  std::atomic<bool> go = false;
  std::atomic<bool> stop = false;
  std::atomic<int> ready = 0;
  std::atomic<std::size_t> turns = 0;
  std::atomic<std::int64_t> released = 0;  // when the last holder began to release
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  std::atomic<int> of[mostProcesses];
  std::int64_t longestWait[mostProcesses];
  std::int64_t idle[mostTurns];
};

void take(LockManager& locks, Shared& all, int me, const Contest& contest) {
  while (!all.stop) {
    const std::int64_t asked = nanos();
    auto held = locks.tryLock("hot", {.ttl = std::chrono::seconds{30}, .waitFor = std::chrono::seconds{60}});
    const std::int64_t started = nanos();
    if (!held) continue;
    if (++all.inside != 1) ++all.overlaps;
    const std::size_t turn = all.turns++;
    const std::int64_t last = all.released;
    if (turn < mostTurns) all.idle[turn] = last == 0 || asked > last ? -1 : started - last;
    all.longestWait[me] = std::max(all.longestWait[me], started - asked);
    ++all.of[me];
    std::this_thread::sleep_for(contest.hold);
    --all.inside;
    all.released = nanos();
    held->release();
  }
}

/// Where the key is, with a server of its own.
struct Store {
  std::string lines;    ///< How the names of its lines begin.
  std::string servers;  ///< As bench::serversOf() has it.
  std::function<LockManager()> open;
  std::function<std::function<void()>()> connect;  ///< What it returns is one round trip.
  /// What the server has done until now, by what it is called, and how often it may do so in a turn.
  struct Count {
    double made = 0;
    std::optional<double> atMost{};
  };
  std::function<std::map<std::string, Count>()> counts;
  std::optional<double> longestIdle{};   ///< In ms, of 99 in 100.
  std::function<void()> bareHandOver{};  ///< By a client without a library.
};

StoreRegistry registry() {
  StoreRegistry made;
  redis::use(made);
  postgres::use(made);
  return made;
}

std::map<std::string, Store::Count> callsOf(const test::RedisServer& server) {
  Store::Count scripts{.atMost = 4}, inside{.atMost = 14};
  std::istringstream lines(server.command({"INFO", "commandstats"}));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t name = line.find("cmdstat_"), count = line.find(":calls=");
    if (name == line.npos || count == line.npos || line.starts_with("cmdstat_config")) continue;
    (line.starts_with("cmdstat_eval") ? scripts : inside).made += std::stod(line.substr(count + 7));
  }
  return {{"scripts a turn", scripts}, {"commands in them, a turn", inside}};
}

Store onRedis() {
  const auto server = std::make_shared<test::RedisServer>();
  const auto open = [server] { return registry().open(server->uri()); };
  return {.lines = "hand-over",
          .servers = "redis-server",
          .open = [open] { return LockManager(open()); },
          .connect =
              [open] {
                return [driver = open()] {
                  (void)driver->holder("nobody", systemClock()->now() + std::chrono::seconds{5});
                };
              },
          .counts = [server] { return callsOf(*server); },
          .longestIdle = 5};
}

Store onPostgres() {
  const auto server = std::make_shared<test::PostgresServer>(std::vector<std::string>{"max_connections=400"});
  server->makeLocks();
  server->execute(bench::bareRows);
  return {.lines = "hand-over, PostgreSQL",
          .servers = "bin/postgres",
          .open = [server] { return LockManager(registry().open(server->uri("postgres+version"))); },
          .connect =
              [server] {
                const std::vector<bench::RawPostgres::Statement> least{{"SELECT 1"}};
                return [session = std::make_shared<bench::RawPostgres>(server->port(), least)] {
                  session->run();
                };
              },
          .counts =
              [server] {
                const double next = std::stod(server->ask("SELECT pg_snapshot_xmax(pg_current_snapshot())"));
                return std::map<std::string, Store::Count>{{"transactions that write, a turn", {next}}};
              },
          .bareHandOver = bench::plainHandOver(server->port())};
}

void work(Shared& all, int me, const Store& store, const Contest& contest) {
  LockManager locks = store.open();
  { auto warm = locks.lock("warm:" + std::to_string(me)); }
  ++all.ready;
  while (!all.go) std::this_thread::sleep_for(milliseconds{1});
  std::vector<std::jthread> threads;
  for (int i = 0; i < contest.threads; ++i) threads.emplace_back([&] { take(locks, all, me, contest); });
}

// In ns, on connections that have been idle for so long, as a waiter's is; the median.
double timeOf(const std::function<void()>& ask, milliseconds idleFor) {
  std::vector<std::int64_t> each;
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::sleep_for(idleFor);
    const std::int64_t began = nanos();
    ask();
    each.push_back(nanos() - began);
  }
  std::sort(each.begin(), each.end());
  return static_cast<double>(each[each.size() / 2]);
}

bool run(const Store& store, const Contest& contest) {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Shared& all = *new (memory) Shared;
  std::vector<pid_t> children;
  for (int me = 0; me < contest.processes; ++me) {
    const pid_t child = ::fork();
    if (child == 0) {
      work(all, me, store, contest);
      ::_exit(0);
    }
    children.push_back(child);
  }
  while (all.ready < contest.processes) std::this_thread::sleep_for(milliseconds{1});
  const double idleTrip = timeOf(store.connect(), contest.hold);
  std::optional<bench::Bare> bare;
  if (store.bareHandOver) {
    const double trips = timeOf(store.bareHandOver, contest.hold) / idleTrip;
    bare = {.way = "bare, NOTIFY and LISTEN",
            .measured = bench::figure(trips, "x"),
            .passed = trips <= mostTrips};
  }
  auto counts = store.counts();
  const bench::ServerTime server(store.servers);
  all.go = true;
  std::this_thread::sleep_for(contest.length);
  all.stop = true;
  const double used = server.seconds();
  const double turns = static_cast<double>(std::max<std::size_t>(all.turns, 1));
  for (const auto& [what, now] : store.counts()) counts[what].made = (now.made - counts[what].made) / turns;
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);

  std::vector<std::int64_t> idle;
  for (std::size_t i = 0; i < std::min<std::size_t>(all.turns, mostTurns); ++i) {
    if (all.idle[i] >= 0) idle.push_back(all.idle[i]);
  }
  std::sort(idle.begin(), idle.end());
  if (idle.empty()) idle.push_back(0);
  const double half = static_cast<double>(idle[idle.size() / 2]);
  const double most = static_cast<double>(idle[idle.size() * 99 / 100]);
  const auto [few, many] = std::minmax_element(all.of, all.of + contest.processes);
  const double fairness = static_cast<double>(many->load()) / std::max(1, few->load());
  const std::int64_t longest = *std::max_element(all.longestWait, all.longestWait + contest.processes);
  const int overlaps = all.overlaps;
  std::printf("%s: %.0f turns in %ld s, %d overlaps, longest wait %.0f ms\n", contest.name().c_str(), turns,
              static_cast<long>(contest.length.count()), overlaps, static_cast<double>(longest) / 1e6);
  std::printf("cost | %s | %s | a turn | 0 | %.3f | %.3f\n", store.lines.c_str(), contest.name().c_str(),
              used * 1e6 / turns, half / 1e3);
  const auto line = [&](const std::string& what, const char* floor, double measured,
                        std::optional<double> atMost, const char* unit,
                        const std::optional<bench::Bare>& beside = std::nullopt) {
    bench::print({.name = store.lines + ", " + contest.name() + ": " + what,
                  .floor = floor,
                  .wanted = atMost ? "at most " + bench::figure(*atMost, unit) : "",
                  .measured = bench::figure(measured, unit),
                  .passed = (!atMost || measured <= *atMost) && overlaps == 0,
                  .bare = beside});
  };
  line("idle, median", "a round trip", half / idleTrip, mostTrips, "x", bare);
  line("idle, p99", "", most / 1e6, store.longestIdle, " ms");
  for (const auto& [what, each] : counts) line(what, "", each.made, each.atMost, "");
  line("turns of the busiest process", "the least busy one", fairness, 1.2, "x");
  ::munmap(memory, sizeof(Shared));
  return overlaps == 0;
}

// What those who wait ask the server while the lock stays held.
void idleWaiters() {
  constexpr int waiters = 16;
  constexpr std::chrono::seconds before{18};  // until the first one looks once a second
  constexpr std::chrono::seconds length{12};  // three looks of each of the others
  const test::RedisServer server;
  const auto managerOf = [](const test::RedisServer& each) {
    return LockManager(registry().open(each.uri()));
  };
  LockManager holder = managerOf(server);
  const Lock held = holder.lock("hot", {.ttl = std::chrono::minutes{10}});  // its renewals are not counted
  std::vector<LockManager> managers;
  for (int i = 0; i < waiters; ++i) managers.push_back(managerOf(server));
  std::stop_source stop;
  std::vector<std::jthread> threads;
  for (LockManager& each : managers) {
    threads.emplace_back(
        [&] { (void)each.tryLock("hot", {.waitFor = std::chrono::hours{1}, .stop = stop.get_token()}); });
  }
  std::this_thread::sleep_for(before);
  server.command({"CONFIG", "RESETSTAT"});
  std::this_thread::sleep_for(length);
  const double each =
      callsOf(server).at("scripts a turn").made / waiters / static_cast<double>(length.count());
  stop.request_stop();
  bench::print({.name = "hand-over: 16 idle waiters, commands a second of each",
                .floor = "",
                .wanted = "at most 0.3",
                .measured = bench::figure(each, ""),
                .passed = each <= 0.3});
}

}  // namespace
}  // namespace lockkeeper

int main() {
  using lockkeeper::Contest;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  bool sound = true;
  for (const auto& open : {lockkeeper::onRedis, lockkeeper::onPostgres}) {
    for (const Contest& each : {Contest{}, Contest{.threads = 4}, Contest{.processes = 64}}) {
      sound = lockkeeper::run(open(), each) && sound;
    }
  }
  lockkeeper::idleWaiters();
  return sound ? 0 : 1;
}
