// What 10,000 held locks cost: processor time here and at the server, memory, and whether all outlive a store
// that takes a second to answer.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "contest.h"
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

struct Renewals final : Listener {
  void on(const Event& event) override {
    if (event.kind == EventKind::renewed) ++count;
  }
  std::atomic<int> count{0};
};

double bytesInUse() { return static_cast<double>(::mallinfo2().uordblks); }

LockManager managerOf(std::uint16_t port, const std::shared_ptr<Listener>& listener = nullptr) {
  StoreRegistry registry;
  redis::use(registry);
  ManagerOptions options;
  options.environment.listener = listener;
  return LockManager(registry.open("redis://127.0.0.1:" + std::to_string(port)), options);
}

std::vector<Lock> taken(LockManager& locks, const LockOptions& options = {}) {
  std::vector<Lock> held;
  held.reserve(count);
  for (int i = 0; i < count; ++i) held.push_back(locks.lock("order:" + std::to_string(i), options));
  return held;
}

void line(const std::string& what, double measured, double below, const char* unit) {
  bench::print({.name = "held locks, 10,000: " + what,
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
  const std::vector<Lock> held = taken(locks);
  line("bytes of each", (bytesInUse() - before) / count, 300, "");
  const double used = bench::processorTime();
  std::this_thread::sleep_for(watched);
  line("processor time", (bench::processorTime() - used) / static_cast<double>(watched.count()) * 100, 2,
       "%");
}

// So many that what an idle server does does not count.
void renewals() {
  const test::RedisServer server;
  const auto renewed = std::make_shared<Renewals>();
  LockManager locks = managerOf(server.port(), renewed);
  const std::vector<Lock> held = taken(locks, {.ttl = 3s});
  renewed->count = 0;
  const double before = bench::processorTimeOf("redis-server");
  std::this_thread::sleep_for(6s);
  line("a renewal, server", (bench::processorTimeOf("redis-server") - before) * 1e6 / renewed->count, 3,
       " µs");
}

void slowStore() {
  const test::RedisServer server;
  test::FaultProxy name(server.port());
  LockManager locks = managerOf(name.port());
  std::vector<Lock> held = taken(locks);
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
  lockkeeper::renewals();
  lockkeeper::slowStore();
  return 0;
}
