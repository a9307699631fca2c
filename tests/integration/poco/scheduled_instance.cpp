// One instance of a service with a Poco timer that ticks every 200 ms. Each run of its task is written into a
// journal: "begin NAME FENCE TIME GRANTED", "end …". Arguments: the port of redis-server, the journal, its
// name. SIGTERM ends it.

#include <Poco/Util/Timer.h>
#include <Poco/Util/TimerTask.h>

#include <csignal>

#include "journal.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/poco/tasks.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::string stamp(Instant when) { return std::to_string(when.time_since_epoch().count()); }

int serve(const std::string& port, const std::string& path, const std::string& name) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  StoreRegistry registry;
  redis::use(registry);
  const auto manager = std::make_shared<LockManager>(registry.open("redis://127.0.0.1:" + port));
  const Journal journal(path);
  const auto clock = systemClock();
  const auto task = std::make_shared<ExclusiveTask>(
      manager, TaskOptions{.name = "tick", .atLeast = 500ms, .atMost = 10s, .ttl = 1s},
      [&](const Lock& lock, const std::stop_token& stop) {
        const Instant begun = clock->now();
        // The first lease of 1 s is valid less its drift and its margin.
        const Instant granted = begun + lock.remaining() - (1s - 12ms - 100ms);
        const auto write = [&](const char* what, Instant when) {
          journal.add(std::string(what) + " " + name + " " + std::to_string(*lock.fence()) + " " +
                      stamp(when) + " " + stamp(granted));
        };
        write("begin", begun);
        // Work of every kind: shorter and longer than the lease, told by the fence.
        pauseUntil(*clock, clock->now() + (*lock.fence() % 3) * 600ms, stop);
        write("end", clock->now());
      });
  std::stop_source stop;
  Poco::Util::Timer timer;
  timer.schedule(poco::makeTimerTask(task, stop.get_token()), 0, 200);
  int number = 0;
  sigwait(&signals, &number);
  stop.request_stop();
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  return count == 4 ? lockkeeper::test::serve(arguments[1], arguments[2], arguments[3]) : 64;
}
