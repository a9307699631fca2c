// One hot key that several processes take in turn, one thread each: how long a released key lies idle until
// its next holder starts, what a turn costs the server, and whether everybody gets as many. Beside it, the
// round trip of an idle connection. usage: hand_over_bench [PROCESSES [HOLD_MS [SECONDS [THINK_MS
// [URI_PARAMETERS]]]]]

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t mostTurns = 1 << 18;
constexpr int mostProcesses = 256;

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

void work(Shared& all, int me, const std::string& uri, milliseconds hold, milliseconds think) {
  StoreRegistry registry;
  redis::use(registry);
  LockManager locks(registry.open(uri));
  { auto warm = locks.lock("warm:" + std::to_string(me)); }
  ++all.ready;
  while (!all.go) std::this_thread::sleep_for(milliseconds{1});
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
    if (hold.count() > 0) std::this_thread::sleep_for(hold);
    --all.inside;
    all.released = nanos();
    held->release();
    if (think.count() > 0) std::this_thread::sleep_for(think);
  }
}

std::string calls(const test::RedisServer& server) {
  std::string out;
  const std::string info = server.command({"INFO", "commandstats"});
  for (std::size_t at = 0; (at = info.find("cmdstat_", at)) != std::string::npos; ++at) {
    const std::string line = info.substr(at + 8, info.find('\n', at) - at - 8);
    out += " " + line.substr(0, line.find(','));
  }
  return out;
}

long callsOf(const test::RedisServer& server, std::initializer_list<const char*> names) {
  long sum = 0;
  const std::string info = calls(server);
  for (const char* const name : names) {
    const std::size_t at = info.find(std::string(" ") + name + ":calls=");
    if (at != std::string::npos) sum += std::atol(info.c_str() + at + std::string(name).size() + 8);
  }
  return sum;
}

int run(int processes, milliseconds hold, std::chrono::seconds length, milliseconds think,
        const std::string& user) {
  const test::RedisServer server({.users = {"user poller on >poll ~* +@all -zadd -zrange -zscore"}});
  const std::string uri = user.empty() ? server.uri() : "redis://poller:poll@" + server.uri().substr(8);
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Shared& all = *new (memory) Shared;
  std::vector<pid_t> children;
  for (int me = 0; me < processes; ++me) {
    const pid_t child = ::fork();
    if (child == 0) {
      work(all, me, uri, hold, think);
      ::_exit(0);
    }
    children.push_back(child);
  }
  while (all.ready < processes) std::this_thread::sleep_for(milliseconds{1});

  std::int64_t roundTrip = 0;
  {
    StoreRegistry registry;
    redis::use(registry);
    const auto driver = registry.open(uri);
    std::vector<std::int64_t> each;
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t began = nanos();
      (void)driver->holder("nobody", systemClock()->now() + std::chrono::seconds{5});
      each.push_back(nanos() - began);
    }
    std::sort(each.begin(), each.end());
    roundTrip = each[each.size() / 2];
  }
  server.command({"CONFIG", "RESETSTAT"});
  all.go = true;
  std::this_thread::sleep_for(length);
  all.stop = true;
  const std::size_t turns = all.turns;
  const long sent = callsOf(server, {"evalsha", "eval"});
  const std::string stats = calls(server);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);

  std::vector<std::int64_t> idle;
  for (std::size_t i = 0; i < std::min<std::size_t>(turns, mostTurns); ++i) {
    if (all.idle[i] >= 0) idle.push_back(all.idle[i]);
  }
  std::sort(idle.begin(), idle.end());
  if (idle.empty()) idle.push_back(0);
  const auto [least, most] = std::minmax_element(all.of, all.of + processes);
  const std::int64_t longest = *std::max_element(all.longestWait, all.longestWait + processes);
  std::printf(
      "%d processes, hold %ld ms, think %ld ms %s: %zu turns in %ld s, %d overlaps\n"
      "  round trip %.0f us; release -> next start p50 %.0f us (%.1f round trips), p99 %.0f us, max %.0f us\n"
      "  scripts a turn %.2f; turns a process %d..%d (%.2f); longest wait %.0f ms\n  calls:%s\n",
      processes, static_cast<long>(hold.count()), static_cast<long>(think.count()), user.c_str(), turns,
      static_cast<long>(length.count()), all.overlaps.load(), static_cast<double>(roundTrip) / 1e3,
      static_cast<double>(idle[idle.size() / 2]) / 1e3,
      static_cast<double>(idle[idle.size() / 2]) / static_cast<double>(roundTrip),
      static_cast<double>(idle[idle.size() * 99 / 100]) / 1e3, static_cast<double>(idle.back()) / 1e3,
      static_cast<double>(sent) / static_cast<double>(std::max<std::size_t>(turns, 1)), least->load(),
      most->load(), static_cast<double>(most->load()) / std::max(1, least->load()),
      static_cast<double>(longest) / 1e6, stats.c_str());
  return all.overlaps == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  std::vector<std::string> given(arguments + 1, arguments + count);
  std::erase_if(given,
                [](const std::string& each) { return each.starts_with("--"); });  // of Google Benchmark
  const auto number = [&](std::size_t at, int otherwise) {
    return given.size() > at ? std::stoi(given[at]) : otherwise;
  };
  return lockkeeper::run(number(0, 8), std::chrono::milliseconds{number(1, 1)},
                         std::chrono::seconds{number(2, 5)}, std::chrono::milliseconds{number(3, 0)},
                         given.size() > 4 ? given[4] : "");
}
