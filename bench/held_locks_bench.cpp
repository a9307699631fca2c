// What 10,000 held locks cost. On Redis: processor time here and at the server, beside a bare client that
// renews as many, memory, and whether all outlive a store that takes a second to answer. On PostgreSQL, which
// has a process for each of them: how many connections.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "contest.h"
#include "fault_proxy.h"
#include "line.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "processor_time.h"
#include "raw_redis.h"
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

/// As many locks, which hiredis keeps: each renewal compares and sets a new end.
class BareLocks {
 public:
  explicit BareLocks(std::uint16_t port) : redis_(port), renewal_(redis_.load(renewal)) {
    for (int i = 0; i < count; ++i) {
      if (redis_.ask({"SET", key(i), token, "NX", "PX", "30000"}) != 1)
        throw std::runtime_error("the bare lock was busy");
    }
  }

  static constexpr int atOnce = 1'000;

  /// The next ones, in one pipeline.
  void renewSome() {
    for (int i = 0; i < atOnce; ++i) redis_.add({"EVALSHA", renewal_, "1", key(next_ + i), token, "30000"});
    for (int i = 0; i < atOnce; ++i) {
      if (redis_.answer() != 1) throw std::runtime_error("the bare lock was lost");
    }
    next_ = (next_ + atOnce) % count;
  }

 private:
  static constexpr const char* token = "0123456789abcdef0123456789abcdef";
  static constexpr const char* renewal =
      "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
      "return redis.call('PEXPIRE', KEYS[1], ARGV[2])";
  static std::string key(int number) { return "order:" + std::to_string(number); }

  bench::RawRedis redis_;
  const std::string renewal_;
  int next_ = 0;
};

// A Redis server shows its port in its command line.
bench::ServerTime timeOf(const test::RedisServer& server) {
  return bench::ServerTime(":" + std::to_string(server.port()));
}

void line(const std::string& what, double measured, double below, const char* unit,
          std::optional<bench::Bare> bare = std::nullopt) {
  bench::print({.name = "held locks, " + what,
                .floor = "",
                .wanted = "below " + bench::figure(below, unit),
                .measured = bench::figure(measured, unit),
                .passed = measured < below,
                .bare = std::move(bare)});
}

void cost() {
  const test::RedisServer server;
  LockManager locks = managerOf(server.port());
  { const Lock first = locks.lock("warm"); }
  const double before = bytesInUse();
  const std::vector<Lock> held = taken(locks);
  line("10,000: bytes of each", (bytesInUse() - before) / count, 300, "");
  const double used = bench::processorTime();
  std::this_thread::sleep_for(watched);
  line("10,000: processor time", (bench::processorTime() - used) / static_cast<double>(watched.count()) * 100,
       2, "%");
}

// So many that what an idle server does does not count. The bare client renews as many in the same seconds,
// on a server of its own.
void renewals() {
  const bench::Awake awake;
  const test::RedisServer server, bareServer;
  BareLocks bare(bareServer.port());
  const auto renewed = std::make_shared<Renewals>();
  LockManager locks = managerOf(server.port(), renewed);
  const std::vector<Lock> held = taken(locks, {.ttl = 3s});
  renewed->count = 0;
  const bench::ServerTime time = timeOf(server), bareTime = timeOf(bareServer);
  int bareRenewals = 0;
  for (const auto end = std::chrono::steady_clock::now() + 6s; std::chrono::steady_clock::now() < end;) {
    bare.renewSome();
    bareRenewals += BareLocks::atOnce;
    std::this_thread::sleep_for(100ms);
  }
  constexpr double below = 3;
  const double ours = time.seconds() * 1e6 / renewed->count, theirs = bareTime.seconds() * 1e6 / bareRenewals;
  line("10,000: a renewal, server", ours, below, " µs",
       bench::Bare{"bare, 1,000 in a pipeline", bench::figure(theirs, " µs"), theirs < below});
}

void slowStore() {
  const test::RedisServer server;
  test::FaultProxy name(server.port());
  LockManager locks = managerOf(name.port());
  std::vector<Lock> held = taken(locks);
  name.set({.kind = test::ProxyFault::Kind::delay, .pause = 1s});
  std::this_thread::sleep_for(35s);
  line("10,000: lost when each answer takes a second",
       static_cast<double>(std::ranges::count_if(held, [](const Lock& each) { return !each.valid(); })), 1,
       "");
  name.passThrough();
}

// From more threads than there are connections, so that all are used.
void onPostgres() {
  constexpr int threads = 16;
  test::PostgresServer server;
  server.makeLocks();
  StoreRegistry registry;
  postgres::use(registry);
  LockManager locks(registry.open(server.uri("postgres+version")));
  std::vector<Lock> held[threads];
  std::atomic<int> most = 0;
  std::jthread watching([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(50ms))
      most = std::max(most.load(), server.sessions());
  });
  {
    std::vector<std::jthread> taking;
    for (int thread = 0; thread < threads; ++thread) {
      taking.emplace_back([&, thread] {
        for (int i = thread; i < count; i += threads)
          held[thread].push_back(locks.lock("order:" + std::to_string(i)));
      });
    }
  }
  std::this_thread::sleep_for(watched + 15s);  // longer than a ttl
  watching.request_stop();
  watching.join();
  int lost = 0;
  for (const auto& each : held)
    lost += static_cast<int>(std::ranges::count_if(each, [](const Lock& lock) { return !lock.valid(); }));
  line("PostgreSQL, 10,000: connections", most, 5, "");
  line("PostgreSQL, 10,000: lost in a ttl and longer", lost, 1, "");
}

}  // namespace
}  // namespace lockkeeper

int main() {
  lockkeeper::cost();
  lockkeeper::renewals();
  lockkeeper::slowStore();
  lockkeeper::onPostgres();
  return 0;
}
