// What 10,000 held locks cost: processor time, memory, and whether all outlive a store that takes a second to
// answer.

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "fault_proxy.h"
#include "line.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

using namespace std::chrono_literals;

constexpr int count = 10'000;
constexpr std::chrono::seconds watched{20};  // each lock is renewed twice

double processorSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double bytesInUse() { return static_cast<double>(::mallinfo2().uordblks); }

LockManager managerOf(std::uint16_t port) {
  StoreRegistry registry;
  redis::use(registry);
  return LockManager(registry.open("redis://127.0.0.1:" + std::to_string(port)));
}

std::vector<Lock> taken(LockManager& locks, const std::string& prefix) {
  std::vector<Lock> held;
  held.reserve(count);
  for (int i = 0; i < count; ++i) held.push_back(locks.lock(prefix + std::to_string(i)));
  return held;
}

void line(const std::string& what, double measured, double below, const char* unit) {
  bench::print({.name = "10,000 held locks: " + what,
                .floor = "",
                .wanted = "below " + bench::figure(below, unit),
                .measured = bench::figure(measured, unit),
                .passed = measured < below});
}

void cost() {
  const test::RedisServer server;
  LockManager locks = managerOf(server.port());
  { const Lock first = locks.lock("warm"); }
  const double before = bytesInUse();
  std::vector<Lock> held = taken(locks, "order:");
  line("bytes of each", (bytesInUse() - before) / count, 300, "");
  const double used = processorSeconds();
  std::this_thread::sleep_for(watched);
  line("processor time", (processorSeconds() - used) / static_cast<double>(watched.count()) * 100, 2, "%");
}

void slowStore() {
  const test::RedisServer server;
  test::FaultProxy name(server.port());
  LockManager locks = managerOf(name.port());
  std::vector<Lock> held = taken(locks, "order:");
  name.set({.kind = test::ProxyFault::Kind::delay, .pause = 1s});
  std::this_thread::sleep_for(35s);
  line("lost when each answer takes a second",
       static_cast<double>(std::ranges::count_if(held, [](const Lock& each) { return !each.valid(); })), 1,
       "");
  name.passThrough();
}

}  // namespace
}  // namespace lockkeeper

int main() {
  lockkeeper::cost();
  lockkeeper::slowStore();
  return 0;
}
