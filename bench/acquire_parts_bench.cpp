// Where the time of one acquire goes: a fenced lock on an idle Redis, taken by one thread. Prints the parts,
// in µs, that bench/table draws: each is the difference between two medians of the same run.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/base/random.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "raw_redis.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

using std::chrono::nanoseconds;

constexpr int times = 5000;

std::shared_ptr<LockDriver> open(const test::RedisServer& server) {
  StoreRegistry registry;
  redis::use(registry);
  return registry.open(server.uri());
}

// In µs. Each call has a number of its own.
template <class Call>
double median(Call&& call) {
  std::vector<nanoseconds> each;
  for (int number = 0; number < times; ++number) {
    const Instant began = systemClock()->now();
    call(number);
    each.push_back(systemClock()->now() - began);
  }
  std::sort(each.begin(), each.end());
  return static_cast<double>(each[each.size() / 2].count()) / 1e3;
}

// Of one script, as the server counts its own time, in µs.
double scriptTime(const test::RedisServer& server) {
  const std::string stats = server.command({"INFO", "commandstats"});
  const std::size_t evalsha = stats.find("cmdstat_evalsha:");
  const std::string field = "usec_per_call=";
  const std::size_t at = stats.find(field, evalsha);
  return evalsha == std::string::npos ? 0 : std::atof(stats.c_str() + at + field.size());
}

void print(const char* part, double micros) {
  std::printf("part | %s | %.1f\n", part, std::max(micros, 0.0));
}

void printParts() {
  const test::RedisServer server;
  bench::RawRedis bare(server.port());
  const auto driver = open(server);
  LockManager locks(open(server));
  { const Lock first = locks.lock("first"); }

  const double roundTrip = median([&](int) { bare.ping(); });
  (void)driver->holder("first", systemClock()->now() + std::chrono::seconds{5});
  server.command({"CONFIG", "RESETSTAT"});
  const double driverCall = median([&](int number) {
    const std::string key = "driver:" + std::to_string(number);
    (void)driver->acquire({.claim = {.key = key, .token = Token::generate(*systemRandom()), .owner = "bench"},
                           .ttl = std::chrono::seconds{30},
                           .deadline = systemClock()->now() + std::chrono::seconds{5}});
  });
  const double script = scriptTime(server);
  std::vector<Lock> held;
  held.reserve(times);
  const double whole =
      median([&](int number) { held.push_back(locks.lock("lock:" + std::to_string(number))); });

  print("a bare round trip: system calls, waking up", roundTrip);
  print("the server: one script", script);
  print("the driver: request, connection, reply", driverCall - script - roundTrip);
  print("core: turn, lease, who renews it", whole - driverCall);
}

}  // namespace
}  // namespace lockkeeper

int main() {
  lockkeeper::printParts();
  return 0;
}
